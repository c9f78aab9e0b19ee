# METADATA
# title: ServiceAccounts from a list
# description: >-
#   Clouds and meshes give identities to ServiceAccounts, whether a token is mounted or not. The default account of a
#   namespace is one without rights; another has to be on the list. The older field serviceAccount counts too.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
# custom:
#   id: service-account
#   code: SBX-031
#   category: identity
#   severity: medium
#   enforcement: Warn
#   remediation: Remove serviceAccountName, or use an account that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.1.5", "OWASP LLM06"]
#   parameters:
#     allowed:
#       description: ServiceAccounts that may be used in every namespace.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     allowedByNamespace:
#       description: More ServiceAccounts, by namespace.
#       type: object
#       additionalProperties: {type: array, items: {type: string, minLength: 1}}
#       default: {}
#     allowDefault:
#       description: Whether the default account of the namespace may be used.
#       type: boolean
#       default: true
package policies.library.service_account

import data.lib.pods
import data.lib.values

deny contains finding if {
	pods.judged
	not allowed(used.name)
	finding := {
		"message": sprintf("the ServiceAccount %q is not one of those that are allowed", [values.text(used.name)]),
		"field": pods.field(used.by),
		"value": used.name,
	}
}

deny contains finding if {
	alias := pods.spec.serviceAccount
	not alias in {null, "", used.name}
	finding := {
		"message": "serviceAccount and serviceAccountName are two accounts",
		"field": pods.field("serviceAccount"),
		"value": alias,
	}
}

# Kubernetes reads the older field only where the newer one is empty.
used := {"by": "serviceAccountName", "name": name} if {
	name := pods.spec.serviceAccountName
	not name in {null, ""}
} else := {"by": "serviceAccount", "name": alias} if {
	alias := pods.spec.serviceAccount
	not alias in {null, ""}
} else := {"by": "serviceAccountName", "name": "default"}

allowed(name) if name in input.parameters.allowed

allowed(name) if name in input.parameters.allowedByNamespace[input.namespace.name]

allowed("default") if input.parameters.allowDefault == true
