# METADATA
# title: Known RuntimeClasses only
# description: >-
#   A RuntimeClass outside the list may be one that shares the kernel of the node. The classes of a tier are the
#   rule runtimeclass-required; this one is for a list of the environment, or of single namespaces.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/runtime-class/
# custom:
#   id: runtimeclass-allowed
#   code: SBX-002
#   category: isolation
#   severity: critical
#   enforcement: "Off"
#   remediation: Use a RuntimeClass of the list, or ask the platform team to add one.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0297"]
#   at_least_one: [allowed, allowedByNamespace]
#   parameters:
#     allowed:
#       description: RuntimeClasses that every namespace may use.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     allowedByNamespace:
#       description: More RuntimeClasses, by namespace.
#       type: object
#       additionalProperties: {type: array, items: {type: string, minLength: 1}}
#       default: {}
package policies.library.runtimeclass_allowed

import data.lib.pods

deny contains finding if {
	value := pods.spec.runtimeClassName
	not value in {null, ""}
	not allowed(value)
	finding := {
		"message": "the RuntimeClass is not one of those that are allowed",
		"field": pods.field("runtimeClassName"),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(value) if value in input.parameters.allowed

allowed(value) if value in input.parameters.allowedByNamespace[input.namespace.name]
