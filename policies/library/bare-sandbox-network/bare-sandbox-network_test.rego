package policies.library.bare_sandbox_network_test

import data.lib.fixtures
import data.policies.library.bare_sandbox_network

owned(owners, parameters) := object.union(
	fixtures.configured(fixtures.plain, parameters),
	{"object": {"metadata": {"ownerReferences": owners}}},
)

of_pool := {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "controller": true}

test_denies[note] if {
	some note, owners in {
		"none": [],
		"null": null,
		"a ConfigMap": [{"apiVersion": "v1", "kind": "ConfigMap", "controller": true}],
		"no controller": [object.union(of_pool, {"controller": false})],
		"another group": [object.union(of_pool, {"apiVersion": "example.com/v1"})],
	}
	bare_sandbox_network.deny == {{
		"message": "the Sandbox is made directly, so no NetworkPolicy selects its Pod",
		"field": "spec.podTemplate",
		"value": "",
	}} with input as owned(owners, {"generate": false})
}

test_denies_without_parameters if {
	count(bare_sandbox_network.deny) == 1 with input as object.remove(fixtures.sandbox(fixtures.plain), ["parameters"])
}

test_allows_what_a_controller_made[kind] if {
	some kind in ["SandboxClaim", "SandboxWarmPool"]
	count(bare_sandbox_network.deny) == 0 with input as owned([object.union(of_pool, {"kind": kind})], {"generate": false})
}

test_allows_where_every_sandbox_has_one if {
	count(bare_sandbox_network.deny) == 0 with input as owned([], {"generate": true})
}

test_allows_other_kinds if {
	count(bare_sandbox_network.deny) == 0 with input as fixtures.as_kind(owned([], {"generate": false}), "SandboxTemplate", "spec.podTemplate")
}
