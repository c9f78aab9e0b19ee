package policies.library.runtimeclass_allowed_test

import data.lib.fixtures
import data.policies.library.runtimeclass_allowed

lists := {"allowed": ["gvisor"], "allowedByNamespace": {"lab": ["kata"]}}

chosen(class, namespace) := object.union(
	fixtures.configured(fixtures.pod_with({"runtimeClassName": class}), lists),
	{"namespace": {"name": namespace}},
)

test_denies[note] if {
	some note, case in {"unknown": ["runc", "lab"], "another namespace": ["kata", "team"], "upper case": ["gVisor", "team"], "number": [1, "lab"]}
	runtimeclass_allowed.deny == {{
		"message": "the RuntimeClass is not one of those that are allowed",
		"field": "spec.podTemplate.spec.runtimeClassName",
		"value": case[0],
	}} with input as chosen(case[0], case[1])
}

test_denies_without_parameters if {
	request := fixtures.sandbox(fixtures.pod_with({"runtimeClassName": "gvisor"}))
	fixtures.fields(runtimeclass_allowed.deny) == {"spec.podTemplate.spec.runtimeClassName"} with input as object.remove(request, ["parameters"])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(runtimeclass_allowed.deny) == {"template.spec.podTemplate.spec.runtimeClassName"} with input as fixtures.as_kind(chosen("runc", "lab"), kind, path)
}

test_allows[note] if {
	some note, case in {"everywhere": ["gvisor", "team"], "its namespace": ["kata", "lab"], "null": [null, "team"], "empty": ["", "team"]}
	count(runtimeclass_allowed.deny) == 0 with input as chosen(case[0], case[1])
}

test_allows_the_plain_sandbox if {
	count(runtimeclass_allowed.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
