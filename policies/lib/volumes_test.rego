package lib.volumes_test

import data.lib.fixtures
import data.lib.volumes

test_volumes_by_path if {
	volumes.by_path == {
		"spec.podTemplate.spec.volumes[0]": {"name": "a"},
		"spec.podTemplate.spec.volumes[1]": {},
	} with input as fixtures.sandbox({"volumes": [{"name": "a"}, null]})
}

test_null_is_no_source if {
	volumes.sources({"name": "a", "hostPath": null, "emptyDir": {}}) == {"emptyDir"}
}

test_label if {
	volumes.label({"name": "a"}) == `volume "a"`
	volumes.label({"name": ""}) == "a volume without a name"
}

test_claims_of_the_object_and_of_ephemeral_volumes if {
	request := object.union(
		fixtures.sandbox({"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeName": "x"}}}}]}),
		{"object": {"spec": {"volumeClaimTemplates": [{"spec": {"volumeName": "y"}}, null]}}},
	)
	volumes.claims == {
		"spec.volumeClaimTemplates[0].spec": {"volumeName": "y"},
		"spec.volumeClaimTemplates[1].spec": {},
		"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec": {"volumeName": "x"},
	} with input as request
}
