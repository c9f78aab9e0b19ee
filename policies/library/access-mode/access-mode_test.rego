package policies.library.access_mode_test

import data.lib.fixtures
import data.policies.library.access_mode

claim(spec) := {"object": {"spec": {"volumeClaimTemplates": [{"spec": spec}]}}, "parameters": {"allowedModes": ["ReadWriteOnce"]}}

test_denies_a_mode if {
	access_mode.deny == {{
		"message": "the access mode is not allowed",
		"field": "spec.volumeClaimTemplates[0].spec.accessModes[1]",
		"value": "ReadWriteMany",
	}} with input as claim({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]})
}

test_denies_a_raw_device if {
	access_mode.deny == {{
		"message": "the volume is a raw device",
		"field": "spec.volumeClaimTemplates[0].spec.volumeMode",
		"value": "Block",
	}} with input as claim({"volumeMode": "Block"})
}

test_denies_an_ephemeral_volume if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Block"}}}}])
	fixtures.fields(access_mode.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode"} with input as fixtures.sandbox(spec)
}

test_denies_without_parameters if {
	count(access_mode.deny) == 1 with input as object.remove(claim({"accessModes": ["ReadWriteOnce"]}), ["parameters"])
}

test_allows[note] if {
	some note, spec in {"listed": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}, "null": {"accessModes": null, "volumeMode": null}, "empty": {"accessModes": [], "volumeMode": ""}, "absent": {}}
	count(access_mode.deny) == 0 with input as claim(spec)
}
