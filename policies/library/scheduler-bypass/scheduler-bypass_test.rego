package policies.library.scheduler_bypass_test

import data.lib.fixtures
import data.policies.library.scheduler_bypass

request(fields) := fixtures.configured(fixtures.pod_with(fields), {"allowedSchedulers": ["ours"]})

test_denies[name] if {
	some name, value in {"nodeName": "ours", "schedulerName": "theirs", "schedulingGates": [{"name": "a"}], "schedulingGroup": {"podGroupName": "a"}}
	scheduler_bypass.deny == {{
		"message": sprintf("%s goes past the scheduler", [name]),
		"field": sprintf("spec.podTemplate.spec.%s", [name]),
		"value": value,
	}} with input as request({name: value})
}

test_denies_without_parameters if {
	count(scheduler_bypass.deny) == 1 with input as object.remove(request({"schedulerName": "ours"}), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"listed": {"schedulerName": "ours"},
		"default": {"schedulerName": "default-scheduler"},
		"empty": {"nodeName": "", "schedulerName": "", "schedulingGates": [], "schedulingGroup": {}},
		"null": {"nodeName": null, "schedulerName": null, "schedulingGates": null, "schedulingGroup": null},
		"absent": {},
	}
	count(scheduler_bypass.deny) == 0 with input as request(fields)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.pod_with({"nodeName": "a"}), {}), kind, path)
	fixtures.fields(scheduler_bypass.deny) == {"template.spec.podTemplate.spec.nodeName"} with input as request
}
