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
	some name, harmless in fields
	value := pods.spec[name]
	not value in harmless
	not allowed(name, value)
	finding := {
		"message": sprintf("%s goes past the scheduler", [name]),
		"field": pods.field(name),
		"value": value,
	}
}

fields := {
	"nodeName": {null, ""},
	"schedulerName": {null, "", "default-scheduler"},
	"schedulingGates": {null, []},
	"schedulingGroup": {null, {}},
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed("schedulerName", value) if value in input.parameters.allowedSchedulers
