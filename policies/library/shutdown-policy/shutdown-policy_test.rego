package policies.library.shutdown_policy_test

import data.policies.library.shutdown_policy

end := "2027-01-01T00:00:00Z"

parameters := {"allowed": ["Delete"]}

sandbox(spec) := {"kind": "Sandbox", "object": {"spec": spec}, "parameters": parameters}

claim(lifecycle) := {"kind": "SandboxClaim", "object": {"spec": {"lifecycle": lifecycle}}, "parameters": parameters}

test_denies_a_sandbox[note] if {
	some note, case in {"absent": [{}, "Retain"], "null": [{"shutdownPolicy": null}, "Retain"], "empty": [{"shutdownPolicy": ""}, "Retain"], "named": [{"shutdownPolicy": "Retain"}, "Retain"], "not listed": [{"shutdownPolicy": "DeleteForeground"}, "DeleteForeground"]}
	shutdown_policy.deny == {{
		"message": sprintf("what has ended is kept: the policy is %s", [case[1]]),
		"field": "spec.shutdownPolicy",
		"value": case[1],
	}} with input as sandbox(object.union({"shutdownTime": end}, case[0]))
}

test_denies_a_claim[note] if {
	some note, lifecycle in {"an end": {"shutdownTime": end}, "a time to live": {"ttlSecondsAfterFinished": 0, "shutdownPolicy": "Retain"}}
	shutdown_policy.deny == {{
		"message": "what has ended is kept: the policy is Retain",
		"field": "spec.lifecycle.shutdownPolicy",
		"value": "Retain",
	}} with input as claim(lifecycle)
}

test_denies_without_parameters if {
	count(shutdown_policy.deny) == 1 with input as object.remove(sandbox({"shutdownTime": end, "shutdownPolicy": "Delete"}), ["parameters"])
}

test_allows[note] if {
	some note, given in {
		"a Sandbox": sandbox({"shutdownTime": end, "shutdownPolicy": "Delete"}),
		"a claim": claim({"shutdownTime": end, "shutdownPolicy": "Delete"}),
		"a Sandbox without an end": sandbox({"shutdownPolicy": "Retain"}),
		"a Sandbox with no end": sandbox({"shutdownTime": null}),
		"a Sandbox with an empty end": sandbox({"shutdownTime": ""}),
		"a claim without an end": claim({"shutdownPolicy": "Retain"}),
		"a claim with no end": claim({"shutdownTime": null, "ttlSecondsAfterFinished": null}),
		"a claim with an empty end": claim({"shutdownTime": ""}),
		"a claim without a lifecycle": claim(null),
		"what a claim made": object.union(sandbox({"shutdownTime": end}), {"object": {"metadata": {"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "controller": true}]}}}),
		"a template": {"kind": "SandboxTemplate", "object": {"spec": {"shutdownTime": end, "lifecycle": {"shutdownTime": end}}}, "parameters": parameters},
	}
	count(shutdown_policy.deny) == 0 with input as given
}
