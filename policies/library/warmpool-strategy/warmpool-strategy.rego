# METADATA
# title: Pools follow their template
# description: >-
#   With OnReplenish, which is the default, Sandboxes that were made before the template was tightened wait on and are
#   handed out. Those that a rule of today refuses are replaced with every strategy.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/
# custom:
#   id: warmpool-strategy
#   code: SBX-063
#   category: lifecycle
#   severity: low
#   enforcement: "Off"
#   remediation: Set updateStrategy.type to RollingUpdate or Recreate.
#   kinds: [SandboxWarmPool]
#   controls: [none]
#   parameters:
#     allowed:
#       description: Strategies that may be used.
#       type: array
#       items: {enum: [OnReplenish, Recreate, RollingUpdate]}
#       minItems: 1
#       default: [Recreate, RollingUpdate]
package policies.library.warmpool_strategy

import data.lib.values

deny contains finding if {
	not allowed(strategy)
	finding := {
		"message": sprintf("Sandboxes of an older template are handed out: the strategy is %s", [values.text(strategy)]),
		"field": "spec.updateStrategy.type",
		"value": strategy,
	}
}

strategy := type if {
	type := input.object.spec.updateStrategy.type
	not type in {null, ""}
} else := "OnReplenish"

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(type) if type in input.parameters.allowed
