# METADATA
# title: Owners
# description: Who an object belongs to.
package lib.owners

# METADATA
# description: Whether a claim or pool of ours controls the object; only controllers can say so.
ours if {
	some owner in input.object.metadata.ownerReferences
	owner.controller == true
	owner.kind in {"SandboxClaim", "SandboxWarmPool"}
	startswith(owner.apiVersion, "extensions.agents.x-k8s.io/")
}
