# METADATA
# title: Nodes for Sandboxes
# description: >-
#   Where a part of the nodes is set aside for untrusted code, a Sandbox asks for those nodes and tolerates their taint.
#   A RuntimeClass with scheduling does the same without this rule. The taints belong on the list of the rule
#   tolerations too.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
# custom:
#   id: isolated-nodes
#   code: SBX-006
#   category: scheduling
#   severity: medium
#   enforcement: "Off"
#   remediation: Set the nodeSelector and the toleration of the nodes for Sandboxes.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   at_least_one: [nodeSelector, tolerations]
#   parameters:
#     nodeSelector:
#       description: Labels of nodes that a Sandbox has to ask for, by key.
#       type: object
#       additionalProperties: {type: string}
#       default: {}
#     tolerations:
#       description: Keys of taints that a Sandbox has to tolerate.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.isolated_nodes

import data.lib.pods
import data.lib.values

deny contains finding if {
	pods.judged
	some key, wanted in input.parameters.nodeSelector
	not pods.spec.nodeSelector[key] == wanted
	finding := {
		"message": sprintf("the Sandbox does not ask for nodes with %s=%s", [key, wanted]),
		"field": sprintf("%s[%s]", [pods.field("nodeSelector"), key]),
		"value": values.given_or(pods.spec, ["nodeSelector", key], ""),
	}
}

deny contains finding if {
	pods.judged
	some key in input.parameters.tolerations
	not tolerated(key)
	finding := {
		"message": sprintf("the Sandbox does not tolerate the taint %s", [key]),
		"field": pods.field("tolerations"),
		"value": key,
	}
}

tolerated(key) if pods.spec.tolerations[_].key == key
