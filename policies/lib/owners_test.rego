package lib.owners_test

import data.lib.owners

owned(references) := {"object": {"metadata": {"ownerReferences": references}}}

ours := {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "controller": true}

test_ours[note] if {
	some note, references in {"a claim": [ours], "a pool": [object.union(ours, {"kind": "SandboxWarmPool"})], "among others": [{"apiVersion": "v1", "kind": "ConfigMap"}, ours]}
	owners.ours with input as owned(references)
}

test_not_ours[note] if {
	some note, references in {
		"none": [],
		"null": null,
		"no controller": [object.union(ours, {"controller": false})],
		"not said": [object.remove(ours, ["controller"])],
		"a template": [object.union(ours, {"kind": "SandboxTemplate"})],
		"of another group": [object.union(ours, {"apiVersion": "agents.x-k8s.io/v1beta1"})],
		"of a longer group": [object.union(ours, {"apiVersion": "extensions.agents.x-k8s.io.example.com/v1"})],
	}
	not owners.ours with input as owned(references)
}
