package policies.library.registry_allowed_test

import data.lib.fixtures
import data.policies.library.registry_allowed

parameters := {
	"registries": ["registry.example.com", "localhost:5000"],
	"repositories": ["docker.io/library/python", "index.docker.io/team"],
}

image(written) := fixtures.configured(fixtures.with_container("containers", {"image": written}), parameters)

test_allows[written] if {
	some written in [
		"python",
		"python:3.12-slim",
		"docker.io/library/python:3",
		"docker.io/python",
		"index.docker.io/python",
		"team/agent",
		"docker.io/team/agent/sub:1",
		"registry.example.com/any/thing:1",
		"REGISTRY.example.com/any",
		"localhost:5000/x",
		"python@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	]
	count(registry_allowed.deny) == 0 with input as image(written)
}

test_denies[written] if {
	some written in [
		"registry.example.com.evil.com/any",
		"registry.example.com:5000/any",
		"evil.com/registry.example.com/any",
		"registry.example.com",
		"localhost/x",
		"localhost:50001/x",
		"python2",
		"docker.io/library/pythonista",
		"teamwork/agent",
		"evil.com/library/python",
		"docker.io/evil/python",
		"debian",
		"registry.example.com./x",
		"registry.example.com@evil.com/x",
		"Python",
		"",
		null,
		7,
	]
	fixtures.fields(registry_allowed.deny) == {"spec.podTemplate.spec.containers[0].image"} with input as image(written)
}

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	registry_allowed.deny == {{
		"message": `image "evil.com/x" is not from an allowed registry; allowed are docker.io/library/python, docker.io/team, localhost:5000, registry.example.com`,
		"field": sprintf("spec.podTemplate.spec.%s[0].image", [list]),
		"value": "evil.com/x",
	}} with input as fixtures.configured(fixtures.with_container(list, {"image": "evil.com/x"}), parameters)
}

test_denies_an_image_volume if {
	spec := fixtures.with_volumes([{"name": "a", "image": {"reference": "evil.com/x"}}])
	fixtures.fields(registry_allowed.deny) == {"spec.podTemplate.spec.volumes[0].image.reference"} with input as fixtures.configured(spec, parameters)
}

test_denies_a_container_without_an_image if {
	fixtures.fields(registry_allowed.deny) == {"spec.podTemplate.spec.containers[0].image"} with input as fixtures.configured({"containers": [{"name": "a"}]}, parameters)
}

test_an_empty_list_allows_nothing[note] if {
	some note, empty in {"absent": {}, "empty": {"registries": [], "repositories": []}, "null": {"registries": null}}
	some finding in registry_allowed.deny with input as fixtures.configured(fixtures.plain, empty)
	endswith(finding.message, "allowed are none")
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(registry_allowed.deny) == {"template.spec.podTemplate.spec.containers[0].image"} with input as fixtures.as_kind(image("evil.com/x"), kind, path)
}
