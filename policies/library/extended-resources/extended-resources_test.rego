package policies.library.extended_resources_test

import data.lib.fixtures
import data.policies.library.extended_resources

amounts(list, bound, values) := fixtures.configured(fixtures.with_container(list, {"resources": {bound: values}}), {"allowed": ["example.com/gpu"]})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(extended_resources.deny) == {{
		"message": "the resource nvidia.com/gpu is not allowed",
		"field": sprintf("spec.podTemplate.spec.%s[0].resources.limits.nvidia.com/gpu", [list]),
		"value": 1,
	}} with input as amounts(list, "limits", {"nvidia.com/gpu": 1, "example.com/gpu": 1})
}

test_denies_requests_and_huge_pages if {
	fixtures.fields(extended_resources.deny) == {"spec.podTemplate.spec.containers[0].resources.requests.hugepages-2Mi"} with input as amounts("containers", "requests", {"hugepages-2Mi": "2Mi"})
}

test_denies_for_the_pod if {
	spec := fixtures.pod_with({"resources": {"limits": {"nvidia.com/gpu": 1}}})
	fixtures.fields(extended_resources.deny) == {"spec.podTemplate.spec.resources.limits.nvidia.com/gpu"} with input as fixtures.sandbox(spec)
}

test_denies_without_parameters if {
	count(extended_resources.deny) == 1 with input as object.remove(amounts("containers", "limits", {"example.com/gpu": 1}), ["parameters"])
}

test_allows[resource] if {
	some resource in ["cpu", "memory", "ephemeral-storage", "example.com/gpu"]
	count(extended_resources.deny) == 0 with input as amounts("containers", "limits", {resource: "1"})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"resources": {"limits": {"a.b/c": 1}}}), {}), kind, path)
	fixtures.fields(extended_resources.deny) == {"template.spec.podTemplate.spec.containers[0].resources.limits.a.b/c"} with input as request
}
