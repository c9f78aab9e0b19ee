package policies.library.overhead_readiness_test

import data.lib.fixtures
import data.policies.library.overhead_readiness

request(fields) := fixtures.configured(fixtures.pod_with(fields), {"maxActiveDeadlineSeconds": 3600})

test_denies[name] if {
	some name, value in {"overhead": {"cpu": "1"}, "readinessGates": [{"conditionType": "a"}]}
	overhead_readiness.deny == {{
		"message": sprintf("%s is not for Sandboxes to choose", [name]),
		"field": sprintf("spec.podTemplate.spec.%s", [name]),
		"value": value,
	}} with input as request({name: value})
}

test_denies_a_deadline[value] if {
	some value in [3601, 0, -1, "60", false]
	fixtures.said(overhead_readiness.deny) == {{
		"message": "the deadline of the Pod is not one that is allowed",
		"field": "spec.podTemplate.spec.activeDeadlineSeconds",
		"value": value,
	}} with input as request({"activeDeadlineSeconds": value})
}

test_denies_every_deadline_without_parameters if {
	count(overhead_readiness.deny) == 1 with input as object.remove(request({"activeDeadlineSeconds": 60}), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"absent": {},
		"null": {"overhead": null, "readinessGates": null, "activeDeadlineSeconds": null},
		"empty": {"overhead": {}, "readinessGates": []},
		"the longest deadline": {"activeDeadlineSeconds": 3600},
		"the shortest deadline": {"activeDeadlineSeconds": 1},
	}
	count(overhead_readiness.deny) == 0 with input as request(fields)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(overhead_readiness.deny) == {"template.spec.podTemplate.spec.overhead"} with input as fixtures.as_kind(request({"overhead": {"cpu": "1"}}), kind, path)
}
