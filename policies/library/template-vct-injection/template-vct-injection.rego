# METADATA
# title: Templates keep their volumes
# description: >-
#   A template that lets claims override its volumes mounts what the tenant says.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/
# custom:
#   id: template-vct-injection
#   code: SBX-039
#   category: identity
#   severity: high
#   enforcement: Warn
#   remediation: Leave the field out or set it to Disallowed.
#   kinds: [SandboxTemplate]
#   controls: ["C-0316"]
#   parameters:
#     allowedModes:
#       description: Modes that may be set, besides Disallowed.
#       type: array
#       items: {enum: [Allowed, Overrides]}
#       default: [Allowed]
#     warnedModes:
#       description: Those of them that are warned of.
#       type: array
#       items: {enum: [Allowed, Overrides]}
#       default: []
package policies.library.template_vct_injection

import data.lib.values

deny contains found(value) if {
	value := input.object.spec.volumeClaimTemplatesPolicy
	not value in {null, "", "Disallowed"}
	not allowed(value)
}

warn contains found(value) if {
	value := input.object.spec.volumeClaimTemplatesPolicy
	allowed(value)
	value in input.parameters.warnedModes
}

found(value) := {
	"message": sprintf("claims may bring volumes: the mode is %s", [values.text(value)]),
	"field": "spec.volumeClaimTemplatesPolicy",
	"value": value,
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(value) if value in input.parameters.allowedModes
