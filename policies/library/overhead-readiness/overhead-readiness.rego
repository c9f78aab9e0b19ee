# METADATA
# title: Fields that are not the tenant's
# description: >-
#   The overhead of a Pod comes from its RuntimeClass, readiness gates wait for a controller that nobody runs, and a
#   deadline of the Pod ends a Sandbox beside its shutdownTime.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/
# custom:
#   id: overhead-readiness
#   code: SBX-069
#   category: scheduling
#   severity: low
#   enforcement: Warn
#   remediation: Remove the field; set shutdownTime to end the Sandbox.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     maxActiveDeadlineSeconds:
#       description: The longest deadline of a Pod, in seconds; 0 allows none.
#       type: integer
#       minimum: 0
#       default: 2592000
package policies.library.overhead_readiness

import data.lib.pods

deny contains finding if {
	value := pods.spec.overhead
	not value in {null, {}}
	finding := found("overhead", value)
}

deny contains finding if {
	value := pods.spec.readinessGates
	not value in {null, []}
	finding := found("readinessGates", value)
}

deny contains finding if {
	value := pods.spec.activeDeadlineSeconds
	value != null
	not within(value)
	finding := {
		"message": "the deadline of the Pod is not one that is allowed",
		"field": pods.field("activeDeadlineSeconds"),
		"value": value,
		"amount": value,
	}
}

found(name, value) := {
	"message": sprintf("%s is not for Sandboxes to choose", [name]),
	"field": pods.field(name),
	"value": value,
}

within(value) if {
	is_number(value)
	value > 0
	value <= input.parameters.maxActiveDeadlineSeconds
}
