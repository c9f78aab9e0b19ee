# METADATA
# title: User namespaces where they hold
# description: >-
#   With hostUsers false root of a container is nobody on the node, if the runtime has user namespaces; one that has
#   none refuses the Pod or goes on without. What a Pod may do as root is judged as if the field were unset: see
#   pss-baseline and pss-restricted.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/pods/user-namespaces/
# custom:
#   id: host-users
#   code: SBX-009
#   category: isolation
#   severity: medium
#   enforcement: Warn
#   remediation: Set hostUsers to false with a runtime that has user namespaces, and leave it out with others.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:runAsNonRoot", "PSS:procMount"]
#   parameters:
#     classes:
#       description: RuntimeClasses whose runtime has user namespaces, besides those of the tier with hostUsers false.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     required:
#       description: Whether a Pod without a RuntimeClass, or with one of those, has to have hostUsers false.
#       type: boolean
#       default: false
package policies.library.host_users

import data.lib.pods
import data.lib.values

deny contains finding if {
	pods.spec.hostUsers == false
	class := values.given_or(pods.spec, ["runtimeClassName"], "")
	class != ""
	not class in capable
	finding := {
		"message": sprintf("the runtime of RuntimeClass %q is not known to have user namespaces", [values.text(class)]),
		"field": pods.field("hostUsers"),
		"value": false,
	}
}

deny contains finding if {
	input.parameters.required == true
	pods.judged
	not pods.spec.hostUsers == false
	values.given_or(pods.spec, ["runtimeClassName"], "") in (capable | {""})
	finding := {
		"message": "root in a container would be root of the node",
		"field": pods.field("hostUsers"),
		"value": values.given_or(pods.spec, ["hostUsers"], ""),
	}
}

capable contains class if some class in input.parameters.classes

capable contains entry.name if {
	some entry in input.tier.runtimeClass.classes
	entry.hostUsers == false
}
