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
