package policies.library.volume_binding_test

import data.lib.fixtures
import data.policies.library.volume_binding

claiming(kind, spec) := {"kind": kind, "object": {"spec": {"volumeClaimTemplates": [
	{"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}},
	{"metadata": {"name": "b"}, "spec": spec},
]}}}

kinds := ["Sandbox", "SandboxTemplate", "SandboxClaim"]

test_denies_each[field] if {
	some field in ["volumeName", "selector", "dataSource", "dataSourceRef", "volumeAttributesClassName"]
	every kind in kinds {
		volume_binding.deny == {{
			"message": sprintf("the volume claim chooses its volume by %s", [field]),
			"field": sprintf("spec.volumeClaimTemplates[1].spec.%s", [field]),
			"value": {"x": "y"},
		}} with input as claiming(kind, {field: {"x": "y"}})
	}
}

test_denies_an_empty_selector if {
	count(volume_binding.deny) == 1 with input as claiming("Sandbox", {"selector": {}})
}

test_denies_in_ephemeral_volumes if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeName": "x"}}}}])
	fixtures.fields(volume_binding.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeName"} with input as fixtures.sandbox(spec)
}

test_allows[note] if {
	some note, spec in {
		"plain": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard"},
		"null": {"volumeName": null, "selector": null},
		"empty name": {"volumeName": ""},
		"no spec": null,
	}
	count(volume_binding.deny) == 0 with input as claiming("Sandbox", spec)
}

test_allows_the_plain_sandbox if {
	count(volume_binding.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

annotated(annotations) := {"object": {"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": annotations}, "spec": {}}]}}}

test_denies_each_annotation[key] if {
	some key in ["pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node", "volume.beta.kubernetes.io/storage-provisioner"]
	volume_binding.deny == {{
		"message": sprintf("the volume claim chooses its volume by the annotation %s", [key]),
		"field": sprintf("spec.volumeClaimTemplates[0].metadata.annotations[%s]", [key]),
		"value": "x",
	}} with input as annotated({key: "x", "example.com/a": "y"})
}

test_denies_annotations_in_ephemeral_volumes if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"pv.kubernetes.io/a": ""}}}}}])
	fixtures.fields(volume_binding.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[pv.kubernetes.io/a]"} with input as fixtures.sandbox(spec)
}

test_leaves_the_class_to_its_own_rule if {
	count(volume_binding.deny) == 0 with input as annotated({"volume.beta.kubernetes.io/storage-class": "x", "note": "y"})
}
