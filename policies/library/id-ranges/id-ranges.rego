# METADATA
# title: User and group ids in a range
# description: >-
#   Group 0 reaches files of root, and ids outside the range may belong to somebody else on a shared
#   volume. Only ids that are set are judged.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: id-ranges
#   code: SBX-021
#   category: isolation
#   severity: medium
#   enforcement: "Off"
#   remediation: Use an id within the range, or leave the field out.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:runAsUser", "CIS 5.7.3"]
#   parameters:
#     min:
#       description: The smallest id that may be used.
#       type: integer
#       minimum: 0
#       default: 1
#     max:
#       description: The largest id that may be used.
#       type: integer
#       minimum: 0
#       default: 2147483647
#     allowMergedGroups:
#       description: Whether groups that the image gives its user are added, as they are unless supplementalGroupsPolicy is Strict.
#       type: boolean
#       default: true
package policies.library.id_ranges

import data.lib.containers
import data.lib.pods
import data.lib.values

deny contains finding if {
	some path, owner in containers.owners
	some name in ["runAsUser", "runAsGroup", "fsGroup"]
	value := owner.securityContext[name]
	value != null
	not within(value)
	finding := found(sprintf("%s.securityContext.%s", [path, name]), value)
}

deny contains finding if {
	some index, value in pods.spec.securityContext.supplementalGroups
	not within(value)
	finding := found(sprintf("%s.securityContext.supplementalGroups[%v]", [pods.field_prefix, index]), value)
}

deny contains finding if {
	input.parameters.allowMergedGroups == false
	pods.judged
	not pods.spec.securityContext.supplementalGroupsPolicy == "Strict"
	finding := {
		"message": "groups of the image are added to those of the Pod",
		"field": sprintf("%s.securityContext.supplementalGroupsPolicy", [pods.field_prefix]),
		"value": values.given_or(pods.spec, ["securityContext", "supplementalGroupsPolicy"], ""),
	}
}

found(field, value) := {
	"message": sprintf("the id is not one from %d to %d", [least, most]),
	"field": field,
	"value": value,
}

within(id) if {
	is_number(id)
	id >= least
	id <= most
}

default least := 1

least := values.given(input.parameters, ["min"])

default most := 2147483647

most := values.given(input.parameters, ["max"])
