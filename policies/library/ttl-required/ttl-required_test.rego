package policies.library.ttl_required_test

import data.policies.library.ttl_required

object(kind, spec) := {"kind": kind, "object": {"spec": spec}}

test_denies_a_sandbox[note] if {
	some note, spec in {"absent": {}, "null": {"shutdownTime": null}, "empty": {"shutdownTime": ""}, "that of a claim": {"lifecycle": {"shutdownTime": "2027-01-01T00:00:00Z", "ttlSecondsAfterFinished": 1}}}
	ttl_required.deny == {{"message": "nothing says when it ends", "field": "spec.shutdownTime", "value": ""}} with input as object("Sandbox", spec)
}

test_denies_a_claim[note] if {
	some note, spec in {"absent": {}, "null": {"lifecycle": null}, "empty": {"lifecycle": {}}, "that of a Sandbox": {"shutdownTime": "2027-01-01T00:00:00Z"}, "text": {"lifecycle": {"ttlSecondsAfterFinished": "x"}}}
	ttl_required.deny == {{"message": "nothing says when it ends", "field": "spec.lifecycle.shutdownTime", "value": ""}} with input as object("SandboxClaim", spec)
}

test_denies_without_a_spec if {
	count(ttl_required.deny) == 1 with input as {"kind": "Sandbox", "object": {}}
}

test_allows_a_sandbox if {
	count(ttl_required.deny) == 0 with input as object("Sandbox", {"shutdownTime": "2027-01-01T00:00:00Z"})
}

test_allows_a_claim[note] if {
	some note, lifecycle in {"time": {"shutdownTime": "2027-01-01T00:00:00Z"}, "seconds": {"ttlSecondsAfterFinished": 0}}
	count(ttl_required.deny) == 0 with input as object("SandboxClaim", {"lifecycle": lifecycle})
}

test_allows_what_a_claim_or_pool_made[kind] if {
	some kind in ["SandboxClaim", "SandboxWarmPool"]
	made := {"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "controller": true}]}
	count(ttl_required.deny) == 0 with input as {"kind": "Sandbox", "object": {"metadata": made, "spec": {}}}
}
