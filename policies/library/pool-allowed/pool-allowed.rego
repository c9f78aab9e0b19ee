# METADATA
# title: Pools from a list
# description: >-
#   A namespace claims only from pools that are meant for it. What the Pod of the pool would break is judged with the claim
#   by every other rule.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
# custom:
#   id: pool-allowed
#   code: SBX-102
#   category: access
#   severity: low
#   enforcement: "Off"
#   remediation: Claim from a pool that the platform team allows for this namespace.
#   kinds: [SandboxClaim]
#   controls: [none]
#   at_least_one: [pools, poolsByNamespace]
#   parameters:
#     pools:
#       description: Pools from which every namespace may claim.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     poolsByNamespace:
#       description: More pools, by namespace.
#       type: object
#       additionalProperties: {type: array, items: {type: string, minLength: 1}}
#       default: {}
package policies.library.pool_allowed

import data.lib.values

deny contains finding if {
	name := values.given_or(input.object, ["spec", "warmPoolRef", "name"], "")
	not allowed(name)
	finding := {
		"message": sprintf("the pool %q is not one from which this namespace may claim", [values.text(name)]),
		"field": "spec.warmPoolRef.name",
		"value": name,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.pools

allowed(name) if name in input.parameters.poolsByNamespace[input.namespace.name]
