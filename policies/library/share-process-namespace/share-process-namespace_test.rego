package policies.library.share_process_namespace_test

import data.lib.fixtures
import data.policies.library.share_process_namespace

test_denies_anything_but_false[note] if {
	some note, value in {"true": true, "string": "false", "number": 0}
	share_process_namespace.deny == {{
		"message": "the containers see each other's processes",
		"field": "spec.podTemplate.spec.shareProcessNamespace",
		"value": value,
	}} with input as fixtures.sandbox(fixtures.pod_with({"shareProcessNamespace": value}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox({"shareProcessNamespace": true}), kind, path)
	fixtures.fields(share_process_namespace.deny) == {"template.spec.podTemplate.spec.shareProcessNamespace"} with input as request
}

test_allows[note] if {
	some note, value in {"false": false, "null": null}
	count(share_process_namespace.deny) == 0 with input as fixtures.sandbox(fixtures.pod_with({"shareProcessNamespace": value}))
}

test_allows_the_plain_sandbox if {
	count(share_process_namespace.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
