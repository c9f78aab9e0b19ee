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

# The update of a Sandbox that nobody owns, which changes these fields.
update(fields) := {
	"operation": "UPDATE",
	"object": {"spec": object.union(stored, fields)},
	"old_object": {"metadata": {}, "spec": stored},
}

stored := {"operatingMode": "Running", "podTemplate": {"spec": {"containers": [{"name": "main", "image": "a"}]}}, "volumeClaimTemplates": []}

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

test_denies_another_sandbox[note] if {
	some note, fields in {
		"a Pod": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "b"}]}}},
		"a Service": {"service": true},
		"volumes": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
	}
	count(direct_sandbox.deny) == 1 with input as request(update(fields))
}

test_allows[note] if {
	some note, fields in {
		"a group": {"user": {"groups": ["red", "ci"]}},
		"made by a pool": {"object": {"metadata": {"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "controller": true}]}}},
		"an update of nothing": update({}),
		"an update of its end": update({"operatingMode": "Suspended", "shutdownTime": "2030-01-01T00:00:00Z", "shutdownPolicy": "Delete"}),
		"an update by a group": object.union(update({"service": true}), {"user": {"groups": ["ci"]}}),
		"an update of what a claim made": object.union(
			update({"service": true}),
			{"object": {"metadata": {"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "controller": true}]}}},
		),
		"nobody": {"user": {"username": ""}},
	}
	count(direct_sandbox.deny) == 0 with input as request(fields)
}

test_allows_what_is_stored if {
	count(direct_sandbox.deny) == 0 with input as object.remove(request({}), ["user"])
}
