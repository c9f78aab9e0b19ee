package policies.library.request_ratio_test

import data.lib.fixtures
import data.policies.library.request_ratio

request(list, resources) := fixtures.configured({list: [{"name": "main", "image": "a", "resources": resources}]}, {"maxRatio": {"cpu": 4, "memory": 1.5}})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(request_ratio.deny) == {{
		"message": "the limit of cpu is more than 4 times its request",
		"field": sprintf("spec.podTemplate.spec.%s[0].resources.requests.cpu", [list]),
		"value": "100m",
	}} with input as request(list, {"requests": {"cpu": "100m"}, "limits": {"cpu": "401m"}})
}

test_denies_the_pod_as_a_whole if {
	fixtures.said(request_ratio.deny) == {{
		"message": "the limit of memory is more than 1.5 times its request",
		"field": "spec.podTemplate.spec.resources.requests.memory",
		"value": "1Gi",
	}} with input as fixtures.configured({"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}}, {"maxRatio": {"memory": 1.5}})
}

test_denies_a_request_of_nothing if {
	count(request_ratio.deny) == 1 with input as request("containers", {"requests": {"cpu": "0"}, "limits": {"cpu": "1m"}})
}

test_allows[note] if {
	some note, resources in {
		"the ratio": {"requests": {"cpu": "250m", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "3Gi"}},
		"no request": {"limits": {"cpu": "8"}},
		"no limit": {"requests": {"cpu": "1"}},
		"null": {"requests": {"cpu": null}, "limits": {"cpu": "8"}},
		"no quantity": {"requests": {"cpu": "much"}, "limits": {"cpu": "8"}},
		"another resource": {"requests": {"ephemeral-storage": "1"}, "limits": {"ephemeral-storage": "1Gi"}},
	}
	count(request_ratio.deny) == 0 with input as request("containers", resources)
}

test_allows_every_ratio_without_parameters if {
	count(request_ratio.deny) == 0 with input as object.remove(request("containers", {"requests": {"cpu": "1m"}, "limits": {"cpu": "8"}}), ["parameters"])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	given := request("containers", {"requests": {"cpu": "1m"}, "limits": {"cpu": "8"}})
	fixtures.fields(request_ratio.deny) == {"template.spec.podTemplate.spec.containers[0].resources.requests.cpu"} with input as fixtures.as_kind(given, kind, path)
}

test_the_ratio_is_the_amount[note] if {
	some note, case in {"a request": ["100m", 10, ""], "none": ["0", 0, 1000]}
	{[finding.amount, finding.content] | some finding in request_ratio.deny} == {[case[1], case[2]]} with input as request("containers", {"requests": {"cpu": case[0]}, "limits": {"cpu": "1"}})
}

test_the_least_request_is_one if {
	{[finding.amount, finding.content] | some finding in request_ratio.deny} == {[1000, ""]} with input as request("containers", {"requests": {"cpu": "1m"}, "limits": {"cpu": "1"}})
}
