package policies.library.one_volume_source_test

import data.lib.fixtures
import data.policies.library.one_volume_source

test_denies_two_sources if {
	fixtures.said(one_volume_source.deny) == {{
		"message": `volume "a" has 2 sources`,
		"field": "spec.podTemplate.spec.volumes[0]",
		"value": "configMap, hostPath",
	}} with input as fixtures.sandbox(fixtures.with_volumes([{"name": "a", "hostPath": {"path": "/"}, "configMap": {"name": "x"}}]))
}

test_denies_no_source[note] if {
	some note, volume in {"absent": {"name": "a"}, "null": {"name": "a", "emptyDir": null}, "null member": null, "string": "x"}
	count(one_volume_source.deny) == 1 with input as fixtures.sandbox(fixtures.with_volumes([volume]))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(fixtures.with_volumes([{"name": "a"}])), kind, path)
	fixtures.fields(one_volume_source.deny) == {"template.spec.podTemplate.spec.volumes[0]"} with input as request
}

test_allows_one[note] if {
	some note, volume in {
		"emptyDir": {"name": "a", "emptyDir": {}},
		"beside null": {"name": "a", "emptyDir": {}, "hostPath": null},
		"unknown to us": {"name": "a", "somethingNew": {}},
	}
	count(one_volume_source.deny) == 0 with input as fixtures.sandbox(fixtures.with_volumes([volume]))
}
