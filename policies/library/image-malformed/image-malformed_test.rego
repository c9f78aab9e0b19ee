package policies.library.image_malformed_test

import data.lib.fixtures
import data.policies.library.image_malformed

image(list, written) := fixtures.sandbox(fixtures.with_container(list, {"image": written}))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	some finding in image_malformed.deny with input as image(list, "Python 3")
	finding.field == sprintf("spec.podTemplate.spec.%s[0].image", [list])
	finding.value == "Python 3"
	startswith(finding.message, `image "Python 3" is not an image reference`)
}

test_denies_what_is_no_text[note] if {
	some note, written in {"empty": "", "null": null, "number": 5, "object": {}}
	count(image_malformed.deny) == 1 with input as image("containers", written)
}

test_denies_when_absent if {
	count(image_malformed.deny) == 1 with input as fixtures.sandbox({"containers": [{"name": "a"}]})
}

test_denies_look_alike_letters if {
	count(image_malformed.deny) == 1 with input as image("containers", "pythоn:3.12")
}

test_denies_an_image_volume if {
	spec := fixtures.with_volumes([{"name": "a", "image": {"reference": "a b"}}])
	fixtures.fields(image_malformed.deny) == {"spec.podTemplate.spec.volumes[0].image.reference"} with input as fixtures.sandbox(spec)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(image_malformed.deny) == {"template.spec.podTemplate.spec.containers[0].image"} with input as fixtures.as_kind(image("containers", "Python"), kind, path)
}

test_allows[written] if {
	some written in ["python", "python:3.12-slim", "registry.example.com:5000/a/b:c"]
	count(image_malformed.deny) == 0 with input as image("containers", written)
}
