# METADATA
# title: Pod Security holds without the webhook
# description: >-
#   The namespace's own label has Kubernetes refuse Pods by the Pod Security Standards, whatever becomes of the webhook.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-admission/
# custom:
#   id: namespace-psa
#   code: SBX-098
#   category: isolation
#   severity: low
#   enforcement: "Off"
#   remediation: Label the namespace with pod-security.kubernetes.io/enforce.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.2.1"]
#   parameters:
#     level:
#       description: The least level that the namespace enforces.
#       enum: [baseline, restricted]
#       default: baseline
package policies.library.namespace_psa

deny contains finding if {
	not enforced
	finding := {
		"message": "the namespace does not enforce the Pod Security Standards",
		"field": "metadata.namespace",
		"value": written,
	}
}

label := "pod-security.kubernetes.io/enforce"

default written := ""

written := input.namespace.labels[label]

enforced if {
	levels := ["baseline", "restricted"]
	some at, level in levels
	level == input.parameters.level
	input.namespace.labels[label] in array.slice(levels, at, count(levels))
}
