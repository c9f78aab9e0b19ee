package policies.library.digest_pinned_test

import data.lib.fixtures
import data.policies.library.digest_pinned

sha := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

image(list, written) := fixtures.configured(
	object.union({"containers": []}, {list: [object.union(fixtures.container, {"image": written})]}),
	{"exemptRegistries": ["internal.example.com", "index.docker.io/team"]},
)

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	digest_pinned.deny == {{
		"message": `image "python:3.12" has no digest`,
		"field": sprintf("spec.podTemplate.spec.%s[0].image", [list]),
		"value": "python:3.12",
	}} with input as image(list, "python:3.12")
}

test_denies_a_registry_that_only_looks_exempt[written] if {
	some written in ["internal.example.com.evil.com/a:1", "docker.io/teamwork/a:1"]
	count(digest_pinned.deny) == 1 with input as image("containers", written)
}

test_allows[written] if {
	some written in [
		concat("@", ["python", sha]),
		concat("@", ["python:3.12", sha]),
		"internal.example.com/a:1",
		"team/a",
		"Not An Image",
	]
	count(digest_pinned.deny) == 0 with input as image("containers", written)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(digest_pinned.deny) == {"template.spec.podTemplate.spec.containers[0].image"} with input as request
}
