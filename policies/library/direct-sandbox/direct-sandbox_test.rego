package policies.library.direct_sandbox_test

import data.policies.library.direct_sandbox

request(fields) := object.union(
	{
		"operation": "CREATE",
		"user": {"username": "ann", "groups": ["red", "system:authenticated"]},
		"object": {"metadata": {}},
		"parameters": {"groups": ["platform", "ci"]},
	},
	fields,
)

test_denies if {
	direct_sandbox.deny == {{
		"message": "only some groups make Sandboxes without a claim",
		"field": "spec",
		"value": "ann",
	}} with input as request({})
}

test_denies_users_without_groups[note] if {
	some note, groups in {"null": null, "empty": []}
	count(direct_sandbox.deny) == 1 with input as request({"user": {"groups": groups}})
}

test_denies_without_parameters if {
	count(direct_sandbox.deny) == 1 with input as object.remove(request({"user": {"groups": ["ci"]}}), ["parameters"])
}

test_denies_an_owner_of_others if {
	count(direct_sandbox.deny) == 1 with input as request({"object": {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "SandboxClaim", "controller": true}]}}})
}

test_allows[note] if {
	some note, fields in {
		"a group": {"user": {"groups": ["red", "ci"]}},
		"made by a pool": {"object": {"metadata": {"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "controller": true}]}}},
		"an update": {"operation": "UPDATE"},
		"nobody": {"user": {"username": ""}},
	}
	count(direct_sandbox.deny) == 0 with input as request(fields)
}

test_allows_what_is_stored if {
	count(direct_sandbox.deny) == 0 with input as object.remove(request({}), ["user"])
}
