# METADATA
# title: No priority over the platform
# description: >-
#   A Pod of high priority has others evicted, those of the platform included.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
# custom:
#   id: priority
#   code: SBX-065
#   category: scheduling
#   severity: high
#   enforcement: Warn
#   remediation: Remove the field, or use a PriorityClass that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowed:
#       description: PriorityClasses that may be used; those of the system never.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.priority

import data.lib.pods

deny contains finding if {
	some name in ["priorityClassName", "priority", "preemptionPolicy"]
	value := pods.spec[name]
	not value in {null, ""}
	not allowed(name, value)
	finding := {
		"message": sprintf("%s is not for Sandboxes to choose", [name]),
		"field": pods.field(name),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed("priorityClassName", value) if {
	value in input.parameters.allowed
	not startswith(value, "system-")
}
