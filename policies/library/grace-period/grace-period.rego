# METADATA
# title: No long goodbye
# description: >-
#   A Pod with a long grace period holds up the node that is drained, and runs its preStop hook all that time.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
# custom:
#   id: grace-period
#   code: SBX-064
#   category: lifecycle
#   severity: low
#   enforcement: Warn
#   remediation: Set terminationGracePeriodSeconds to a number of seconds from 0 to the most that is allowed.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     maxSeconds:
#       description: The longest grace period, in seconds.
#       type: integer
#       minimum: 0
#       default: 300
package policies.library.grace_period

import data.lib.pods

deny contains finding if {
	value := pods.spec.terminationGracePeriodSeconds
	value != null
	not allowed(value)
	finding := {
		"message": sprintf("the grace period is not one of 0 to %d seconds", [most]),
		"field": pods.field("terminationGracePeriodSeconds"),
		"value": value,
		"amount": value,
	}
}

allowed(value) if {
	is_number(value)
	value >= 0
	value <= most
}

default most := 300

most := input.parameters.maxSeconds
