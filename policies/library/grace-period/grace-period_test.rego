package policies.library.grace_period_test

import data.lib.fixtures
import data.policies.library.grace_period

lasting(seconds) := fixtures.configured(fixtures.pod_with({"terminationGracePeriodSeconds": seconds}), {"maxSeconds": 60})

test_denies[note] if {
	some note, value in {"longer": 61, "negative": -1, "text": "30"}
	fixtures.said(grace_period.deny) == {{
		"message": "the grace period is not one of 0 to 60 seconds",
		"field": "spec.podTemplate.spec.terminationGracePeriodSeconds",
		"value": value,
	}} with input as lasting(value)
}

test_denies_without_parameters if {
	request := object.remove(lasting(301), ["parameters"])
	fixtures.fields(grace_period.deny) == {"spec.podTemplate.spec.terminationGracePeriodSeconds"} with input as request
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(grace_period.deny) == {"template.spec.podTemplate.spec.terminationGracePeriodSeconds"} with input as fixtures.as_kind(lasting(61), kind, path)
}

test_allows[value] if {
	some value in [0, 60, null]
	count(grace_period.deny) == 0 with input as lasting(value)
}

test_allows_the_default_without_parameters if {
	count(grace_period.deny) == 0 with input as object.remove(lasting(300), ["parameters"])
}

test_allows_the_plain_sandbox if {
	count(grace_period.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
