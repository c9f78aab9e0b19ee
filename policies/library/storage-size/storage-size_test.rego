package policies.library.storage_size_test

import data.lib.fixtures
import data.policies.library.storage_size

claims(sizes) := {
	"object": {"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": size}}}} | some size in sizes]}},
	"parameters": {"maxSize": "10Gi", "maxTotal": "20Gi", "maxCount": 3},
}

test_denies_each_size[note] if {
	some note, size in {"too large": "10241Mi", "zero": "0", "negative": "-1", "word": "lots"}
	fixtures.said(storage_size.deny) == {{
		"message": "the size is not one up to 10Gi",
		"field": "spec.volumeClaimTemplates[0].spec.resources.requests.storage",
		"value": size,
	}} with input as claims([size])
}

test_denies_no_size[note] if {
	some note, spec in {"absent": {}, "null": {"resources": {"requests": {"storage": null}}}}
	request := object.union(claims([]), {"object": {"spec": {"volumeClaimTemplates": [{"spec": spec}]}}})
	fixtures.fields(storage_size.deny) == {"spec.volumeClaimTemplates[0].spec.resources.requests.storage"} with input as request
}

test_denies_the_sum if {
	fixtures.said(storage_size.deny) == {{
		"message": "the volumes together are larger than 20Gi",
		"field": "spec.volumeClaimTemplates",
		"value": "21474836481",
	}} with input as claims(["10Gi", "10Gi", "1"])
}

test_denies_the_number if {
	fixtures.said(storage_size.deny) == {{
		"message": "there are 4 volumes, at most 3 are allowed",
		"field": "spec.volumeClaimTemplates",
		"value": 4,
	}} with input as claims(["1Gi", "1Gi", "1Gi", "1Gi"])
}

test_denies_an_ephemeral_volume if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
	fixtures.fields(storage_size.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage"} with input as fixtures.configured(spec, claims([]).parameters)
}

test_denies_without_parameters if {
	found := storage_size.deny with input as object.remove(claims(["1"]), ["parameters"])
	{finding.message | some finding in found} == {
		"the size is not one up to 0",
		"the volumes together are larger than 0",
		"there are 1 volumes, at most 0 are allowed",
	}
}

test_allows[note] if {
	some note, sizes in {"the most of all": ["10Gi", "9Gi", "1Gi"], "the least": ["1m"], "none": []}
	count(storage_size.deny) == 0 with input as claims(sizes)
}
