package policies.library.volume_types_test

import data.lib.fixtures
import data.policies.library.volume_types

request(value) := fixtures.configured(fixtures.with_volumes([value]), {"allowed": ["emptyDir", "configMap"]})

test_denies[kind] if {
	some kind in ["nfs", "iscsi", "csi"]
	fixtures.said(volume_types.deny) == {{
		"message": sprintf(`volume "a" is of the type %s`, [kind]),
		"field": sprintf("spec.podTemplate.spec.volumes[0].%s", [kind]),
		"value": kind,
	}} with input as request({"name": "a", kind: {"server": "a"}})
}

test_denies_a_second_source if {
	fixtures.fields(volume_types.deny) == {"spec.podTemplate.spec.volumes[0].nfs"} with input as request({"name": "a", "emptyDir": {}, "nfs": {}})
}

test_denies_without_parameters if {
	count(volume_types.deny) == 1 with input as object.remove(request({"emptyDir": {}}), ["parameters"])
}

test_allows[note] if {
	some note, volume in {"listed": {"name": "a", "emptyDir": {}}, "null": {"name": "a", "configMap": {}, "nfs": null}, "none": {"name": "a"}, "of another rule": {"name": "a", "hostPath": {"path": "/"}}}
	count(volume_types.deny) == 0 with input as request(volume)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_volumes([{"nfs": {}}]), {}), kind, path)
	fixtures.fields(volume_types.deny) == {"template.spec.podTemplate.spec.volumes[0].nfs"} with input as request
}
