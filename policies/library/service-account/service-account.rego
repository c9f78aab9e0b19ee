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
	name := pods.spec.serviceAccountName
	not name in {null, ""}
	not allowed(name)
	finding := found("serviceAccountName", name)
}

# Kubernetes reads the older field only where the newer one is empty.
deny contains finding if {
	alias := pods.spec.serviceAccount
	not alias in {null, ""}
	values.given_or(pods.spec, ["serviceAccountName"], "") == ""
	not allowed(alias)
	finding := found("serviceAccount", alias)
}

deny contains finding if {
	alias := pods.spec.serviceAccount
	not alias in {null, ""}
	not values.given_or(pods.spec, ["serviceAccountName"], "") in {alias, ""}
	finding := {
		"message": "serviceAccount and serviceAccountName are two accounts",
		"field": pods.field("serviceAccount"),
		"value": alias,
	}
}

deny contains finding if {
	not input.parameters.allowDefault == true
	pods.judged
	values.given_or(pods.spec, ["serviceAccountName"], "") == ""
	values.given_or(pods.spec, ["serviceAccount"], "") == ""
	not allowed("default")
	finding := found("serviceAccountName", "default")
}

found(field, name) := {
	"message": sprintf("the ServiceAccount %q is not one of those that are allowed", [values.text(name)]),
	"field": pods.field(field),
	"value": name,
}

# Apart from the rules: within them, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.allowed

allowed(name) if name in input.parameters.allowedByNamespace[input.namespace.name]

allowed("default") if input.parameters.allowDefault == true
