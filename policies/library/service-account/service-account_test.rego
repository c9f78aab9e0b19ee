package policies.library.service_account_test

import data.lib.fixtures
import data.policies.library.service_account

request(fields, default_account) := object.union(
	fixtures.configured(fixtures.pod_with(fields), {"allowed": ["agent"], "allowedByNamespace": {"team": ["own"]}, "allowDefault": default_account}),
	{"namespace": {"name": "team"}},
)

test_denies_by_both_fields[field] if {
	some field in ["serviceAccountName", "serviceAccount"]
	service_account.deny == {{
		"message": `the ServiceAccount "admin" is not one of those that are allowed`,
		"field": sprintf("spec.podTemplate.spec.%s", [field]),
		"value": "admin",
	}} with input as request({field: "admin"}, true)
}

test_denies_an_alias_of_another_account[note] if {
	some note, fields in {"named": {"serviceAccountName": "agent", "serviceAccount": "admin"}, "only": {"serviceAccountName": "agent", "serviceAccount": "own"}}
	service_account.deny == {{
		"message": "serviceAccount and serviceAccountName are two accounts",
		"field": "spec.podTemplate.spec.serviceAccount",
		"value": fields.serviceAccount,
	}} with input as request(fields, true)
}

test_denies_the_default_account[note] if {
	some note, fields in {"absent": {}, "null": {"serviceAccountName": null, "serviceAccount": null}, "empty": {"serviceAccountName": "", "serviceAccount": ""}, "named": {"serviceAccountName": "default"}}
	service_account.deny == {{
		"message": `the ServiceAccount "default" is not one of those that are allowed`,
		"field": "spec.podTemplate.spec.serviceAccountName",
		"value": "default",
	}} with input as request(fields, false)
}

test_allows_the_default_account_by_its_name if {
	given := request({}, false)
	count(service_account.deny) == 0 with input as object.union(given, {"parameters": {"allowed": ["default"]}})
}

test_denies_the_account_of_another_namespace if {
	count(service_account.deny) == 1 with input as object.union(request({"serviceAccountName": "own"}, true), {"namespace": {"name": "other"}})
}

test_denies_without_parameters if {
	count(service_account.deny) == 1 with input as object.remove(request({"serviceAccountName": "agent"}, true), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"absent": {},
		"named default": {"serviceAccountName": "default"},
		"listed": {"serviceAccountName": "agent"},
		"of the namespace": {"serviceAccountName": "own"},
		"twice the same": {"serviceAccountName": "agent", "serviceAccount": "agent"},
		"by the older field": {"serviceAccount": "agent", "serviceAccountName": ""},
		"null beside": {"serviceAccountName": "agent", "serviceAccount": null},
		"empty beside": {"serviceAccountName": "agent", "serviceAccount": ""},
	}
	count(service_account.deny) == 0 with input as request(fields, true)
}

test_judges_no_pod_that_does_not_exist_yet if {
	count(service_account.deny) == 0 with input as {"kind": "SandboxClaim", "object": {}, "parameters": {}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(service_account.deny) == {"template.spec.podTemplate.spec.serviceAccountName"} with input as fixtures.as_kind(request({"serviceAccountName": "admin"}, true), kind, path)
}

test_an_account_by_the_older_field_is_not_the_default_one if {
	count(service_account.deny) == 0 with input as request({"serviceAccount": "agent"}, false)
}
