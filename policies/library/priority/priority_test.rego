package policies.library.priority_test

import data.lib.fixtures
import data.policies.library.priority

request(fields) := fixtures.configured(fixtures.pod_with(fields), {"allowed": ["low", "system-node-critical", "PreemptLowerPriority"]})

test_denies[note] if {
	some note, case in {
		"class": ["priorityClassName", "high"],
		"a class of the system, listed or not": ["priorityClassName", "system-node-critical"],
		"number": ["priority", 0],
		"policy": ["preemptionPolicy", "PreemptLowerPriority"],
	}
	priority.deny == {{
		"message": sprintf("%s is not for Sandboxes to choose", [case[0]]),
		"field": sprintf("spec.podTemplate.spec.%s", [case[0]]),
		"value": case[1],
	}} with input as request({case[0]: case[1]})
}

test_denies_without_parameters if {
	count(priority.deny) == 1 with input as object.remove(request({"priorityClassName": "low"}), ["parameters"])
}

test_allows[note] if {
	some note, fields in {"listed": {"priorityClassName": "low"}, "empty": {"priorityClassName": ""}, "null": {"priorityClassName": null, "priority": null, "preemptionPolicy": null}, "absent": {}}
	count(priority.deny) == 0 with input as request(fields)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.pod_with({"priority": 1}), {}), kind, path)
	fixtures.fields(priority.deny) == {"template.spec.podTemplate.spec.priority"} with input as request
}
