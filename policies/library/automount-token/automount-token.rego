# METADATA
# title: No ServiceAccount token
# description: >-
#   Unless it is turned off, Kubernetes mounts a token for its API into every container: untrusted code
#   must not hold one. The field has to say false; leaving it out means true.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
# custom:
#   id: automount-token
#   code: SBX-030
#   category: identity
#   severity: high
#   enforcement: Deny
#   floor: true
#   remediation: Set automountServiceAccountToken to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.1.6", "NSA:C-0034", "C-0309", "OWASP LLM06"]
#   parameters:
#     allowServiceAccounts:
#       description: Names of ServiceAccounts whose token may be mounted.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.automount_token

import data.lib.pods
import data.lib.values

deny contains finding if {
	not pods.spec.automountServiceAccountToken == false
	not allowed
	pods.judged
	finding := {
		"message": "a token for the Kubernetes API would be mounted",
		"field": pods.field("automountServiceAccountToken"),
		"value": values.given_or(pods.spec, ["automountServiceAccountToken"], ""),
		"content": object.filter(pods.spec, ["serviceAccount", "serviceAccountName"]),
	}
}

allowed if {
	name := values.string_at(pods.spec, ["serviceAccountName"])
	name in values.collection_at(input.parameters, ["allowServiceAccounts"])
}
