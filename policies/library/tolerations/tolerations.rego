# METADATA
# title: No tolerations of foreign taints
# description: >-
#   A toleration without a key, or of the taints of the control plane, puts untrusted code on nodes that
#   are kept from it.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
# custom:
#   id: tolerations
#   code: SBX-067
#   category: scheduling
#   severity: high
#   enforcement: Warn
#   remediation: Remove the toleration, or use one that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowed:
#       description: Keys of taints that may be tolerated.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.tolerations

import data.lib.pods

deny contains finding if {
	some index, toleration in pods.spec.tolerations
	not allowed(toleration)
	finding := {
		"message": "the toleration is not one of those that are allowed",
		"field": sprintf("%s[%v]", [pods.field("tolerations"), index]),
		"value": toleration,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(toleration) if {
	toleration.key != ""
	toleration.key in input.parameters.allowed
}
