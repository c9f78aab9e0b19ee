package lib.facts_test

import data.lib.containers
import data.lib.fixtures
import data.lib.labels
import data.lib.quantities
import data.lib.sizes
import data.lib.totals

test_the_servers_facts_are_used if {
	facts := {"owners": {"a": 1}, "faults": {"b": 2}, "limited": {"c": 3}, "highest": {"d": 4}, "totals": {"e": 5}, "sizes": {"f": 6}, "requested": {"g": 7}, "pod_labels": {"h": 8}, "pod_annotations": {"i": 9}, "started": {"j"}}
	{
		"owners": containers.owners, "faults": quantities.faults, "limited": quantities.limited,
		"highest": quantities.highest, "totals": totals.by_resource, "sizes": sizes.of_pod,
		"requested": quantities.requested, "pod_labels": labels.of_pods, "pod_annotations": labels.annotations_of_pods,
		"started": containers.started_paths,
	} == facts with input as facts
}

amounts := {
	"resources": {"limits": {"cpu": "2"}},
	"containers": [
		{"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "lots"}, "requests": {"cpu": "-1"}}},
		{"name": "b", "resources": {"limits": {"cpu": "1", "example.com/a": "0"}}, "env": [{}, {}], "args": ["abc"]},
	],
}

test_owners_are_containers_and_two_fields_of_the_pod if {
	some path, owner in containers.owners with input as fixtures.sandbox(amounts)
	path == "spec.podTemplate.spec"
	owner == {"resources": {"limits": {"cpu": "2"}}}
	count(containers.owners) == 3 with input as fixtures.sandbox(amounts)
}

test_faults if {
	quantities.faults == {
		"spec.podTemplate.spec.containers[0].resources.limits.memory": {
			"owner": "spec.podTemplate.spec.containers[0]", "bound": "limits", "resource": "memory",
			"reason": "is not a quantity such as 500m, 2, 1.5Gi or 1e3",
		},
		"spec.podTemplate.spec.containers[0].resources.requests.cpu": {
			"owner": "spec.podTemplate.spec.containers[0]", "bound": "requests", "resource": "cpu", "reason": "is less than zero",
		},
	} with input as fixtures.sandbox(amounts)
}

test_limited_and_highest if {
	quantities.limited.cpu == {
		"spec.podTemplate.spec",
		"spec.podTemplate.spec.containers[0]",
		"spec.podTemplate.spec.containers[1]",
	} with input as fixtures.sandbox(amounts)
	object.keys(quantities.limited) == {"cpu"} with input as fixtures.sandbox(amounts)
	quantities.highest == {"cpu": 2000, "memory": 0, "example.com/a": 0} with input as fixtures.sandbox(amounts)
}

test_above if {
	quantities.above({"cpu": 1999}) == {["spec.podTemplate.spec", "limits", "cpu"]} with input as fixtures.sandbox(amounts)
	count(quantities.above({"cpu": 2000, "memory": 1, "other": 0})) == 0 with input as fixtures.sandbox(amounts)
}

test_sizes_and_totals if {
	sizes.of_pod == {
		"containers": 2, "volumes": 0, "annotations": 0, "commands": 3,
		"env": 2, "claims": 0, "requested": 0,
	} with input as fixtures.sandbox(amounts)
	totals.by_resource == {"cpu": 1500, "memory": 0, "example.com/a": 0} with input as fixtures.sandbox(amounts)
}

test_labels_and_annotations_of_claims_too if {
	metadata := {"labels": {"a": "b"}, "annotations": {"c": "d"}}
	claim := {"pod": {"metadata": metadata}, "object": {"spec": {"additionalPodMetadata": metadata}}}
	labels.of_pods == {"spec.podTemplate.metadata.labels": {"a": "b"}, "spec.additionalPodMetadata.labels": {"a": "b"}} with input as claim
	labels.annotations_of_pods == {"spec.podTemplate.metadata.annotations": {"c": "d"}, "spec.additionalPodMetadata.annotations": {"c": "d"}} with input as claim
	labels.of_pods == {} with input as {}
}

test_the_least_limit_of_one_container_is_a_limit if {
	quantities.limited == {"cpu": {"spec.podTemplate.spec.containers[0]"}} with input as fixtures.sandbox({"containers": [{"resources": {"limits": {"cpu": "1m"}}}]})
}

test_variables_of_nobody if {
	sizes.of_pod.env == 0 with input as fixtures.sandbox({})
}

test_only_those_with_too_many_variables if {
	spec := {"containers": [{"env": [{}, {}]}, {"env": [{}, {}, {}]}]}
	sizes.env_above(2) == {"spec.podTemplate.spec.containers[1]": 3} with input as fixtures.sandbox(spec)
}

test_only_amounts_above_the_ceiling if {
	spec := {"containers": [{"resources": {"limits": {"cpu": "2"}}}, {"resources": {"limits": {"cpu": "3"}}}]}
	quantities.above({"cpu": 2000}) == {["spec.podTemplate.spec.containers[1]", "limits", "cpu"]} with input as fixtures.sandbox(spec)
}

test_totals_count_nothing_below_zero_and_nothing_unreadable if {
	totals.by_resource == {"cpu": 0, "memory": 0, "example.com/a": 1000, "example.com/b": 0} with input as fixtures.sandbox({
		"containers": [{"resources": {"limits": {"example.com/b": "-2"}, "requests": {"example.com/a": "1"}}}],
		"overhead": {"cpu": "-1", "memory": "lots", "example.com/c": null},
	})
}
