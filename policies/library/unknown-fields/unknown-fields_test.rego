package policies.library.unknown_fields_test

import data.lib.fixtures
import data.policies.library.unknown_fields

request(spec) := fixtures.configured(spec, {"extraAllowed": ["reviewed"]})

test_denies_a_field_of_the_pod if {
	unknown_fields.deny == {{
		"message": "nobody has reviewed the field hostKernel",
		"field": "spec.podTemplate.spec.hostKernel",
		"value": "hostKernel",
	}} with input as request(fixtures.pod_with({"hostKernel": true}))
}

test_denies_a_field_of_the_context_of_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"fsGroup": 1, "hostKernel": true}})
	fixtures.fields(unknown_fields.deny) == {"spec.podTemplate.spec.securityContext.hostKernel"} with input as request(spec)
}

test_denies_a_field_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.fields(unknown_fields.deny) == {sprintf("spec.podTemplate.spec.%s[0].devices", [list])} with input as request({list: [{"name": "a", "devices": []}]})
}

test_denies_a_field_of_a_context_in_every_list[list] if {
	some list in fixtures.lists
	spec := {list: [{"securityContext": {"privileged": false, "devices": []}}]}
	fixtures.fields(unknown_fields.deny) == {sprintf("spec.podTemplate.spec.%s[0].securityContext.devices", [list])} with input as request(spec)
}

test_denies_without_parameters if {
	fixtures.fields(unknown_fields.deny) == {"spec.podTemplate.spec.reviewed"} with input as object.remove(request(fixtures.pod_with({"reviewed": 1})), ["parameters"])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(unknown_fields.deny) == {"template.spec.podTemplate.spec.hostKernel"} with input as fixtures.as_kind(request({"hostKernel": 1}), kind, path)
}

test_every_reviewed_field_is_allowed if {
	spec := object.union({name: 1 | some name in unknown_fields.of_pods}, {
		"securityContext": {name: 1 | some name in unknown_fields.of_pod_contexts},
		"containers": [object.union({name: 1 | some name in unknown_fields.of_containers}, {"securityContext": {name: 1 | some name in unknown_fields.of_contexts}})],
		"initContainers": null, "ephemeralContainers": null,
	})
	count(unknown_fields.deny) == 0 with input as request(spec)
	count(unknown_fields.of_pods) > 40
}

test_allows_what_the_environment_reviewed_and_null if {
	spec := fixtures.pod_with({"reviewed": 1, "hostKernel": null, "securityContext": {"a": null}, "initContainers": [{"b": null, "securityContext": {"c": null}}]})
	count(unknown_fields.deny) == 0 with input as request(spec)
}

test_allows_the_plain_sandbox if {
	count(unknown_fields.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
