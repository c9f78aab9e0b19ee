package policies.library.storage_class_test

import data.lib.fixtures
import data.policies.library.storage_class

claim(spec) := {"object": {"spec": {"volumeClaimTemplates": [{"spec": spec}]}}, "parameters": {"allowed": ["standard"]}}

test_denies[note] if {
	some note, case in {"another": [{"storageClassName": "fast"}, "fast"], "absent": [{}, ""], "null": [{"storageClassName": null}, ""], "empty": [{"storageClassName": ""}, ""]}
	storage_class.deny == {{
		"message": sprintf("the storage class %q is not allowed", [case[1]]),
		"field": "spec.volumeClaimTemplates[0].spec.storageClassName",
		"value": case[1],
	}} with input as claim(case[0])
}

test_denies_an_ephemeral_volume if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}])
	fixtures.fields(storage_class.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName"} with input as fixtures.sandbox(spec)
}

test_denies_without_parameters if {
	count(storage_class.deny) == 1 with input as object.remove(claim({"storageClassName": "standard"}), ["parameters"])
}

test_allows if {
	count(storage_class.deny) == 0 with input as claim({"storageClassName": "standard"})
}

test_allows_the_plain_sandbox if {
	count(storage_class.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_the_default_of_the_cluster_is_not_an_empty_name[note] if {
	some note, case in {
		"absent": [{}, {"allowed": [""]}, 0],
		"null": [{"storageClassName": null}, {"allowed": [""]}, 0],
		"empty": [{"storageClassName": ""}, {"allowed": [""]}, 1],
		"empty, allowed": [{"storageClassName": ""}, {"allowed": [], "allowWithoutClass": true}, 0],
		"absent, empty allowed": [{}, {"allowed": ["standard"], "allowWithoutClass": true}, 1],
	}
	given := object.union(claim(case[0]), {"parameters": case[1]})
	count(storage_class.deny) == case[2] with input as object.union(object.remove(given, ["parameters"]), {"parameters": object.union({"allowWithoutClass": false}, case[1])})
}

annotated(annotations, spec, parameters) := {
	"object": {"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": annotations}, "spec": spec}]}},
	"parameters": object.union({"allowed": ["standard"], "allowWithoutClass": false}, parameters),
}

test_the_annotation_counts_before_the_field[note] if {
	some note, case in {
		"another": ["fast", "fast", {}],
		"empty": ["", "", {"allowed": ["standard", ""]}],
		"null": [null, "", {}],
	}
	storage_class.deny == {{
		"message": sprintf("the storage class %q is not allowed", [case[1]]),
		"field": "spec.volumeClaimTemplates[0].metadata.annotations[volume.beta.kubernetes.io/storage-class]",
		"value": case[1],
	}} with input as annotated({"volume.beta.kubernetes.io/storage-class": case[0]}, {"storageClassName": "standard"}, case[2])
}

test_allows_by_the_annotation[note] if {
	some note, case in {
		"listed": [{"volume.beta.kubernetes.io/storage-class": "standard"}, {}],
		"empty, allowed": [{"volume.beta.kubernetes.io/storage-class": ""}, {"allowWithoutClass": true}],
	}
	count(storage_class.deny) == 0 with input as annotated(case[0], {"storageClassName": "fast"}, case[1])
}

test_other_annotations_choose_no_class[note] if {
	some note, annotations in {"other": {"example.com/storage-class": "standard"}, "none": {}, "null": null, "text": "x", "list": ["volume.beta.kubernetes.io/storage-class"]}
	fixtures.fields(storage_class.deny) == {"spec.volumeClaimTemplates[0].spec.storageClassName"} with input as annotated(annotations, {"storageClassName": "fast"}, {})
}

test_denies_the_annotation_of_an_ephemeral_volume if {
	spec := fixtures.with_volumes([{"name": "a", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}}}}}])
	fixtures.fields(storage_class.deny) == {"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[volume.beta.kubernetes.io/storage-class]"} with input as fixtures.sandbox(spec)
}
