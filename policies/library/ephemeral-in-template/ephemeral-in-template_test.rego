package policies.library.ephemeral_in_template_test

import data.lib.fixtures
import data.policies.library.ephemeral_in_template

test_denies if {
	fixtures.said(ephemeral_in_template.deny) == {{
		"message": "a Pod cannot start with ephemeral containers",
		"field": "spec.podTemplate.spec.ephemeralContainers",
		"value": "a, b",
	}} with input as fixtures.sandbox({"ephemeralContainers": [{"name": "a"}, {"name": "b"}]})
}

test_denies_what_is_no_list[note] if {
	some note, value in {"object": {}, "string": "x", "null member": [null]}
	count(ephemeral_in_template.deny) == 1 with input as fixtures.sandbox({"ephemeralContainers": value})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox({"ephemeralContainers": [{}]}), kind, path)
	fixtures.fields(ephemeral_in_template.deny) == {"template.spec.podTemplate.spec.ephemeralContainers"} with input as request
}

test_allows[note] if {
	some note, value in {"empty": [], "null": null}
	count(ephemeral_in_template.deny) == 0 with input as fixtures.sandbox({"ephemeralContainers": value})
}

test_allows_the_plain_sandbox if {
	count(ephemeral_in_template.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
