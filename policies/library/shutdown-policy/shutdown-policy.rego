# METADATA
# title: What has ended goes away
# description: >-
#   Retain, which is the default, keeps the object, its volumes and what they cost when a Sandbox has ended. Only what
#   ends is judged, and not what a claim or pool made, since that goes with it.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
# custom:
#   id: shutdown-policy
#   code: SBX-060
#   category: lifecycle
#   severity: low
#   enforcement: "Off"
#   remediation: Set shutdownPolicy to Delete.
#   kinds: [Sandbox, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     allowed:
#       description: Policies that may be used.
#       type: array
#       items: {enum: [Delete, DeleteForeground, Retain]}
#       minItems: 1
#       default: [Delete, DeleteForeground]
package policies.library.shutdown_policy

import data.lib.owners
import data.lib.values

deny contains finding if {
	input.kind == "Sandbox"
	not owners.ours
	values.given(input.object, ["spec", "shutdownTime"]) != ""
	finding := judged(input.object.spec, "spec.shutdownPolicy")
}

deny contains finding if {
	input.kind == "SandboxClaim"
	some name in ["shutdownTime", "ttlSecondsAfterFinished"]
	values.given(input.object, ["spec", "lifecycle", name]) != ""
	finding := judged(input.object.spec.lifecycle, "spec.lifecycle.shutdownPolicy")
}

# A policy that is allowed has no finding: the function is undefined for it.
judged(lifecycle, field) := {
	"message": sprintf("what has ended is kept: the policy is %s", [values.text(policy)]),
	"field": field,
	"value": policy,
} if {
	policy := effective(lifecycle)
	not allowed(policy)
}

effective(lifecycle) := policy if {
	policy := lifecycle.shutdownPolicy
	not policy in {null, ""}
} else := "Retain"

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(policy) if policy in input.parameters.allowed
