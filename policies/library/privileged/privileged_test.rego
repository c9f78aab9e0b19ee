package policies.library.privileged_test

import data.lib.fixtures
import data.policies.library.privileged

with_privileged(list, value) := fixtures.with_container(list, {"securityContext": {"privileged": value}})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	privileged.deny == {{
		"message": `container "main" runs privileged`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.privileged", [list]),
		"value": true,
	}} with input as fixtures.sandbox(with_privileged(list, true))
}

test_denies_anything_but_false[note] if {
	some note, value in {"string": "true", "false as a string": "false", "number": 1, "object": {}}
	count(privileged.deny) == 1 with input as fixtures.sandbox(with_privileged("containers", value))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(with_privileged("containers", true)), kind, path)
	fixtures.fields(privileged.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.privileged"} with input as request
}

test_denies_the_second_container if {
	spec := {"containers": [fixtures.container, {"name": "b", "securityContext": {"privileged": true}}]}
	fixtures.fields(privileged.deny) == {"spec.podTemplate.spec.containers[1].securityContext.privileged"} with input as fixtures.sandbox(spec)
}

test_allows[note] if {
	some note, context in {
		"false": {"privileged": false},
		"null": {"privileged": null},
		"empty": {},
		"no context": null,
	}
	count(privileged.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"securityContext": context}))
}

test_allows_the_plain_sandbox if {
	count(privileged.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
