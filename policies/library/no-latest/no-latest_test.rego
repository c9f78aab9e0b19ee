package policies.library.no_latest_test

import data.lib.fixtures
import data.policies.library.no_latest

image(list, written) := fixtures.sandbox(fixtures.with_container(list, {"image": written}))

digest := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	no_latest.deny == {{
		"message": `image "python" has neither a tag nor a digest`,
		"field": sprintf("spec.podTemplate.spec.%s[0].image", [list]),
		"value": "python",
	}} with input as image(list, "python")
}

test_denies_the_tag_latest[written] if {
	some written in ["python:latest", "localhost:5000/python:latest"]
	some finding in no_latest.deny with input as image("containers", written)
	finding.message == sprintf(`image %q has the moving tag "latest"`, [written])
}

test_a_port_is_no_tag if {
	count(no_latest.deny) == 1 with input as image("containers", "localhost:5000/python")
}

test_denies_tags_by_parameter if {
	request := object.union(image("containers", "python:edge"), {"parameters": {"tags": ["latest", "edge"]}})
	count(no_latest.deny) == 1 with input as request
}

test_denies_without_parameters if {
	count(no_latest.deny) == 1 with input as {"pod": {"spec": {"containers": [{"image": "python:latest"}]}}}
}

test_denies_an_image_volume if {
	spec := fixtures.with_volumes([{"name": "a", "image": {"reference": "python"}}])
	fixtures.fields(no_latest.deny) == {"spec.podTemplate.spec.volumes[0].image.reference"} with input as fixtures.sandbox(spec)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(no_latest.deny) == {"template.spec.podTemplate.spec.containers[0].image"} with input as fixtures.as_kind(image("containers", "python"), kind, path)
}

test_allows[written] if {
	some written in ["python:3.12-slim", "python:latest2", concat("@", ["python", digest]), concat("@", ["python:latest", digest])]
	count(no_latest.deny) == 0 with input as image("containers", written)
}

# A reference that cannot be read is for image-malformed to deny.
test_leaves_malformed_images_to_their_own_rule if {
	count(no_latest.deny) == 0 with input as image("containers", "Python")
}
