# METADATA
# title: Scheduled by the scheduler
# description: >-
#   A Pod that names its node skips taints and the scheduling of its RuntimeClass; one held by gates or
#   given to another scheduler may as well.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
# custom:
#   id: scheduler-bypass
#   code: SBX-066
#   category: scheduling
#   severity: high
#   enforcement: Warn
#   remediation: Remove the field.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedSchedulers:
#       description: Schedulers that may be named, besides the default one.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.scheduler_bypass

import data.lib.pods

deny contains finding if {
	spec := pods.spec
	some name in ["nodeName", "schedulerName", "schedulingGates", "schedulingGroup"]
	value := spec[name]
	not harmless(name, value)
	finding := {
		"message": sprintf("%s goes past the scheduler", [name]),
		"field": pods.field(name),
		"value": value,
	}
}

harmless("nodeName", value) if value in {null, ""}

harmless("schedulerName", value) if value in {null, "", "default-scheduler"}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
harmless("schedulerName", value) if value in input.parameters.allowedSchedulers

harmless("schedulingGates", value) if value in {null, []}

harmless("schedulingGroup", value) if value in {null, {}}
