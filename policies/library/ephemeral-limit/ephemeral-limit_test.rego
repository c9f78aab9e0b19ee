package policies.library.ephemeral_limit_test

import data.lib.fixtures
import data.policies.library.ephemeral_limit

request(list, limits) := fixtures.sandbox({list: [{"name": "main", "image": "a", "resources": {"limits": limits}}]})

test_denies_in_every_list_that_starts[list] if {
	some list in ["containers", "initContainers"]
	ephemeral_limit.deny == {{
		"message": `container "main" has no limit of ephemeral-storage`,
		"field": sprintf("spec.podTemplate.spec.%s[0].resources.limits.ephemeral-storage", [list]),
		"value": "",
	}} with input as request(list, {"cpu": "1", "memory": "1Gi"})
}

test_denies[note] if {
	some note, case in {"zero": ["0", "0"], "no quantity": ["much", "much"], "null": [null, ""], "negative": ["-1Gi", "-1Gi"]}
	some finding in ephemeral_limit.deny with input as request("containers", {"ephemeral-storage": case[0]})
	finding.value == case[1]
}

test_denies_without_resources if {
	count(ephemeral_limit.deny) == 1 with input as fixtures.sandbox({"containers": [{"name": "main"}]})
}

test_allows_a_limit if {
	count(ephemeral_limit.deny) == 0 with input as request("containers", {"ephemeral-storage": "2Gi"})
}

test_no_limit_of_the_pod_as_a_whole_serves if {
	spec := {"containers": [{"name": "main"}], "resources": {"limits": {"ephemeral-storage": "2Gi"}}}
	count(ephemeral_limit.deny) == 1 with input as fixtures.sandbox(spec)
}

test_allows_what_does_not_start if {
	count(ephemeral_limit.deny) == 0 with input as request("ephemeralContainers", {})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(ephemeral_limit.deny) == {"template.spec.podTemplate.spec.containers[0].resources.limits.ephemeral-storage"} with input as fixtures.as_kind(request("containers", {}), kind, path)
}
