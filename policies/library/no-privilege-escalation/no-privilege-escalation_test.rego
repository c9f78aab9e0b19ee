package policies.library.no_privilege_escalation_test

import data.lib.fixtures
import data.policies.library.no_privilege_escalation

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	spec := object.union({"containers": []}, {list: [object.union(fixtures.container, {"securityContext": {"allowPrivilegeEscalation": true}})]})
	no_privilege_escalation.deny == {{
		"message": `container "main" may gain privileges`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.allowPrivilegeEscalation", [list]),
		"value": true,
	}} with input as fixtures.sandbox(spec)
}

test_denies_what_is_not_false[note] if {
	some note, context in {"absent": {}, "null": {"allowPrivilegeEscalation": null}, "text": {"allowPrivilegeEscalation": "false"}, "null context": null}
	count(no_privilege_escalation.deny) == 1 with input as fixtures.sandbox(fixtures.with_container("containers", {"securityContext": context}))
}

test_allows_false if {
	count(no_privilege_escalation.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"securityContext": {"allowPrivilegeEscalation": false}}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(no_privilege_escalation.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.allowPrivilegeEscalation"} with input as request
}
