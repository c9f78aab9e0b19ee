package policies.library.limits_required_test

import data.lib.fixtures
import data.policies.library.limits_required

limits(list, value) := fixtures.sandbox(fixtures.with_container(list, {"resources": {"limits": value}}))

test_denies_each_missing_limit[list] if {
	some list in ["containers", "initContainers"]
	fixtures.fields(limits_required.deny) == {
		sprintf("spec.podTemplate.spec.%s[0].resources.limits.cpu", [list]),
		sprintf("spec.podTemplate.spec.%s[0].resources.limits.memory", [list]),
	} with input as limits(list, {"cpu": null, "memory": null})
}

test_denies_without_resources[note] if {
	some note, container in {"absent": {"name": "a"}, "null": {"name": "a", "resources": null}, "no limits": {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1"}}}, "wrong type": {"name": "a", "resources": "x"}}
	count(limits_required.deny) == 2 with input as fixtures.sandbox({"containers": [container]})
}

test_denies_without_parameters if {
	count(limits_required.deny) == 2 with input as {"pod": {"spec": {"containers": [{"name": "a"}]}}}
}

test_denies_a_limit_that_is_none[note] if {
	some note, cpu in {"zero": "0", "number zero": 0, "negative": "-1", "word": "lots", "empty": "", "object": {}}
	limits_required.deny == {{
		"message": `container "main" has no cpu limit`,
		"field": "spec.podTemplate.spec.containers[0].resources.limits.cpu",
		"value": cpu,
	}} with input as limits("containers", {"cpu": cpu, "memory": "1Gi"})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(limits("containers", {"cpu": "0"}), kind, path)
	fixtures.fields(limits_required.deny) == {"template.spec.podTemplate.spec.containers[0].resources.limits.cpu"} with input as request
}

test_other_resources_by_parameter if {
	fixtures.fields(limits_required.deny) == {"spec.podTemplate.spec.containers[0].resources.limits.ephemeral-storage"} with input as fixtures.configured(fixtures.plain, {"resources": ["ephemeral-storage"]})
}

test_allows_every_notation[cpu] if {
	some cpu in ["1", 1, 0.5, "500m", "1e0", "0.1"]
	count(limits_required.deny) == 0 with input as limits("containers", {"cpu": cpu, "memory": "1Gi"})
}

kept := {"resources": ["cpu", "memory"], "podLevelResources": true}

test_allows_a_limit_of_the_pod_that_the_cluster_keeps if {
	spec := {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "containers": [{"name": "a"}], "initContainers": [{"name": "b"}]}
	count(limits_required.deny) == 0 with input as fixtures.configured(spec, kept)
}

test_a_limit_of_the_pod_does_not_serve_where_it_is_dropped[note] if {
	some note, parameters in {"said": {"resources": ["cpu"], "podLevelResources": false}, "not said": {"resources": ["cpu"]}}
	spec := {"resources": {"limits": {"cpu": "1"}}, "containers": [{"name": "a"}]}
	fixtures.fields(limits_required.deny) == {"spec.podTemplate.spec.containers[0].resources.limits.cpu"} with input as fixtures.configured(spec, parameters)
}

test_kubernetes_has_no_such_limit_of_the_pod if {
	spec := {"resources": {"limits": {"ephemeral-storage": "1Gi"}}, "containers": [{"name": "a"}]}
	fixtures.fields(limits_required.deny) == {"spec.podTemplate.spec.containers[0].resources.limits.ephemeral-storage"} with input as fixtures.configured(spec, object.union(kept, {"resources": ["ephemeral-storage"]}))
}

test_a_zero_limit_of_the_pod_does_not_serve if {
	spec := {"resources": {"limits": {"cpu": "0", "memory": "1Gi"}}, "containers": [{"name": "a"}]}
	fixtures.fields(limits_required.deny) == {"spec.podTemplate.spec.containers[0].resources.limits.cpu"} with input as fixtures.configured(spec, kept)
}

test_the_servers_reading_decides if {
	request := object.union(
		limits("containers", {"cpu": "1", "memory": "1Gi"}),
		{"quantities": {"spec.podTemplate.spec.containers[0].resources.limits.cpu": {"milli": 0, "bytes": 0}}},
	)
	fixtures.fields(limits_required.deny) == {"spec.podTemplate.spec.containers[0].resources.limits.cpu"} with input as request
}

test_allows_the_plain_sandbox if {
	count(limits_required.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_ephemeral_containers_cannot_have_limits if {
	count(limits_required.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("ephemeralContainers", {"resources": null}))
}
