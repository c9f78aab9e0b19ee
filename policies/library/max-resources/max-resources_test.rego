package policies.library.max_resources_test

import data.lib.fixtures
import data.policies.library.max_resources

ceilings := {"container": {"cpu": "4", "memory": "8Gi"}, "pod": {"cpu": "6"}}

amounts(list, bound, values) := fixtures.configured(fixtures.with_container(list, {"resources": {bound: values}}), ceilings)

cpus(list, values) := {list: [{"name": "c", "restartPolicy": policy, "resources": {"limits": {"cpu": cpu}}} |
	some value in values
	[cpu, policy] := value
]}

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	some bound in ["limits", "requests"]
	fixtures.said(max_resources.deny) == {{
		"message": "the amount of cpu is more than 4",
		"field": sprintf("spec.podTemplate.spec.%s[0].resources.%s.cpu", [list, bound]),
		"value": "4001m",
	}} with input as amounts(list, bound, {"cpu": "4001m"})
}

test_denies_requests if {
	fixtures.fields(max_resources.deny) == {"spec.podTemplate.spec.containers[0].resources.requests.memory"} with input as amounts("containers", "requests", {"memory": "9Gi"})
}

test_denies_for_the_pod[bound] if {
	some bound in ["limits", "requests"]
	fixtures.said(max_resources.deny) == {{
		"message": "the amount of cpu is more than 6",
		"field": sprintf("spec.podTemplate.spec.resources.%s.cpu", [bound]),
		"value": "6001m",
	}} with input as fixtures.configured(fixtures.pod_with({"resources": {bound: {"cpu": "6001m", "memory": "9Gi"}}}), ceilings)
}

test_denies_for_the_pod_what_no_ceiling_can_allow if {
	spec := fixtures.pod_with({"resources": {"limits": {"cpu": "1"}}})
	fields := fixtures.fields(max_resources.deny) with input as fixtures.configured(spec, {"container": {}, "pod": {"cpu": "6 cores"}})
	"spec.podTemplate.spec.resources.limits.cpu" in fields
}

# The ceiling of a container is not that of all of them.
test_allows_the_pod_more_than_a_container if {
	spec := fixtures.pod_with({"resources": {"limits": {"cpu": "6", "memory": "9Gi"}}})
	count(max_resources.deny) == 0 with input as fixtures.configured(spec, ceilings)
}

test_denies_what_is_no_amount[note] if {
	some note, case in {"word": ["lots", "is not a quantity such as 500m, 2, 1.5Gi or 1e3"], "negative": ["-1", "is less than zero"]}
	fixtures.said(max_resources.deny) == {{
		"message": sprintf("the amount of ephemeral-storage %s", [case[1]]),
		"field": "spec.podTemplate.spec.containers[0].resources.limits.ephemeral-storage",
		"value": case[0],
	}} with input as amounts("containers", "limits", {"ephemeral-storage": case[0]})
}

test_denies_the_sum[note] if {
	some note, spec in {
		"containers": cpus("containers", [["3", ""], ["3001m", ""]]),
		"a sidecar beside them": object.union(cpus("containers", [["3", ""]]), cpus("initContainers", [["3001m", "Always"]])),
		"init beside a sidecar": cpus("initContainers", [["3", "Always"], ["3001m", ""]]),
	}
	fixtures.said(max_resources.deny) == {{
		"message": "the containers together may use more cpu than 6",
		"field": "spec.podTemplate.spec.containers",
		"value": "6001m",
	}} with input as fixtures.configured(spec, ceilings)
}

test_allows_the_sum[note] if {
	some note, spec in {
		"containers": cpus("containers", [["3", ""], ["3", ""]]),
		"init before them": object.union(cpus("containers", [["4", ""]]), cpus("initContainers", [["4", ""], ["4", ""]])),
		"a sidecar beside them": object.union(cpus("containers", [["3", ""]]), cpus("initContainers", [["3", "Always"]])),
		"ephemeral": object.union(cpus("containers", [["4", ""]]), cpus("ephemeralContainers", [["4", ""]])),
	}
	count(max_resources.deny) == 0 with input as fixtures.configured(spec, ceilings)
}

test_allows[note] if {
	some note, values in {"most": {"cpu": "4", "memory": "8Gi"}, "zero": {"cpu": "0"}, "another resource": {"example.com/a": "100"}, "null": {"cpu": null}, "empty": {}}
	count(max_resources.deny) == 0 with input as amounts("containers", "limits", values)
}

test_without_ceilings_every_amount_is_allowed if {
	count(max_resources.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"resources": {"limits": {"cpu": "1000"}}}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"resources": {"limits": {"cpu": "x"}}}), {}), kind, path)
	fixtures.fields(max_resources.deny) == {"template.spec.podTemplate.spec.containers[0].resources.limits.cpu"} with input as request
}

requests(list, values) := {list: [{"name": "c", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}} |
	some value in values
	[cpu, policy] := value
]}

test_denies_the_sum_of_what_is_requested[note] if {
	some note, spec in {
		"containers": requests("containers", [["3", ""], ["3001m", ""]]),
		"beside limits": object.union(cpus("containers", [["3", ""]]), requests("initContainers", [["3001m", "Always"]])),
		"init beside a sidecar": requests("initContainers", [["3", "Always"], ["3001m", ""]]),
		"more than the limit": {"containers": [
			{"name": "a", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "3001m"}}},
			{"name": "b", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}},
		]},
		"the overhead": object.union(cpus("containers", [["3", ""], ["3", ""]]), {"overhead": {"cpu": "1m"}}),
		"the overhead alone": {"overhead": {"cpu": "6001m"}},
	}
	fixtures.said(max_resources.deny) == {{
		"message": "the containers together may use more cpu than 6",
		"field": "spec.podTemplate.spec.containers",
		"value": "6001m",
	}} with input as fixtures.configured(spec, ceilings)
}

test_less_than_nothing_takes_nothing_off if {
	spec := object.union(cpus("containers", [["3", ""], ["3001m", ""], ["-1", ""]]), {"overhead": {"cpu": "-1"}})
	"spec.podTemplate.spec.containers" in fixtures.fields(max_resources.deny) with input as fixtures.configured(spec, ceilings)
}

test_allows_the_sum_with_the_overhead if {
	spec := object.union(cpus("containers", [["3", ""]]), {"overhead": {"cpu": "3", "memory": null}})
	count(max_resources.deny) == 0 with input as fixtures.configured(spec, ceilings)
}
