package policies.library.verified_digest_test

import data.lib.fixtures
import data.policies.library.verified_digest

known := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

other := "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

request(list, image) := fixtures.configured(fixtures.with_container(list, {"image": image}), {"digests": {known: ""}})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	verified_digest.deny == {
		{
			"message": `image "python:3.12" is not one of the verified digests`,
			"field": sprintf("spec.podTemplate.spec.%s[0].image", [list]),
			"value": "python:3.12",
		},
	} with input as fixtures.configured({list: [{"name": "main", "image": "python:3.12"}]}, {"digests": {known: ""}})
}

test_denies[note] if {
	some note, image in {
		"another digest": sprintf("python@%s", [other]),
		"a tag alone": "python:3.12",
		"a digest as tag": replace(sprintf("python:%s", [known]), "sha256:", ""),
		"nothing": "",
		"null": null,
		"number": 7,
		"unreadable": sprintf("Python@%s", [known]),
	}
	fixtures.fields(verified_digest.deny) == {"spec.podTemplate.spec.containers[0].image"} with input as request("containers", image)
}

test_denies_an_image_volume if {
	spec := {"volumes": [{"name": "a", "image": {"reference": "python"}}]}
	fixtures.fields(verified_digest.deny) == {"spec.podTemplate.spec.volumes[0].image.reference"} with input as fixtures.configured(spec, {"digests": {known: "scanned"}})
}

test_denies_without_parameters if {
	count(verified_digest.deny) == 1 with input as object.remove(request("containers", sprintf("python@%s", [known])), ["parameters"])
}

test_allows[image] if {
	some image in [sprintf("python@%s", [known]), sprintf("example.com:5000/a/b:1@%s", [known])]
	count(verified_digest.deny) == 0 with input as request("containers", image)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(verified_digest.deny) == {"template.spec.podTemplate.spec.containers[0].image"} with input as fixtures.as_kind(request("containers", "python"), kind, path)
}
