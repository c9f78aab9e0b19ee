package policies.library.automount_token_test

import data.lib.fixtures
import data.policies.library.automount_token

path := "spec.podTemplate.spec.automountServiceAccountToken"

test_denies_anything_but_false[note] if {
	some note, value in {"true": true, "null": null, "string": "false", "number": 0}
	fixtures.fields(automount_token.deny) == {path} with input as fixtures.sandbox(fixtures.pod_with({"automountServiceAccountToken": value}))
}

test_denies_when_absent if {
	fixtures.said(automount_token.deny) == {{
		"message": "a token for the Kubernetes API would be mounted",
		"field": path,
		"value": "",
	}} with input as fixtures.sandbox({"containers": [fixtures.container]})
}

test_denies_without_a_pod if {
	fixtures.fields(automount_token.deny) == {path} with input as {"kind": "Sandbox", "parameters": {}}
}

test_denies_without_parameters if {
	fixtures.fields(automount_token.deny) == {path} with input as {"kind": "Sandbox", "pod": {"spec": {"serviceAccountName": "a"}}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, prefix in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox({}), kind, prefix)
	fixtures.fields(automount_token.deny) == {"template.spec.podTemplate.spec.automountServiceAccountToken"} with input as request
}

test_leaves_a_claim_without_a_template_alone[kind] if {
	some kind, _ in fixtures.borrowed
	count(automount_token.deny) == 0 with input as {"kind": kind, "parameters": {}}
}

test_allows_false if {
	count(automount_token.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_allows_a_listed_service_account if {
	count(automount_token.deny) == 0 with input as fixtures.configured({"serviceAccountName": "builder"}, {"allowServiceAccounts": ["builder"]})
}

test_denies_an_unlisted_service_account[note] if {
	some note, spec in {"other": {"serviceAccountName": "builder2"}, "absent": {}, "null": {"serviceAccountName": null}, "prefix": {"serviceAccountName": "build"}}
	count(automount_token.deny) == 1 with input as fixtures.configured(spec, {"allowServiceAccounts": ["builder"]})
}
