# METADATA
# title: No egress to namespaces of the platform
# description: >-
#   A rule for all namespaces, or for those of the platform, opens its controllers, dashboards and webhooks to code that
#   nobody reviewed. Selectors count by the namespaces that they select today; rules for port 53 alone are for names.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: egress-namespaces
#   code: SBX-086
#   category: network
#   severity: high
#   enforcement: Warn
#   remediation: Select the namespaces that the Sandboxes need, by kubernetes.io/metadata.name.
#   kinds: [SandboxTemplate]
#   controls: ["CIS 5.3.2", "NSA:C-0030"]
#   data: [namespaces]
#   parameters:
#     protected:
#       description: Namespaces of the platform; a * at the end or the beginning stands for anything.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [kube-*, agent-sandbox-system]
package policies.library.egress_namespaces

import data.lib.cidrs
import data.lib.labels
import data.lib.values

deny contains finding if {
	some i, rule in input.object.spec.networkPolicy.egress
	ports := cidrs.ports_of(rule)
	some j, peer in rule.to
	selector := peer.namespaceSelector
	selector != null
	not names_only(rule)
	reached := reach(selector)
	finding := {
		"message": sprintf("the rule opens %s", [reached]),
		"field": sprintf("spec.networkPolicy.egress[%v].to[%v].namespaceSelector", [i, j]),
		"value": reached,
		"content": ({peer} | ports),
	}
}

# A selector that reaches nothing of the platform has no answer.
reach(selector) := "every namespace" if {
	count(values.object_at(selector, ["matchLabels"])) == 0
	count(values.collection_at(selector, ["matchExpressions"])) == 0
} else := concat(", ", reached) if {
	reached := {name |
		some name, namespace in data.inventory.namespaces
		protected(name)
		labels.selects(selector, namespace.labels)
	}
	count(reached) > 0
}

protected(name) if {
	some entry in input.parameters.protected
	values.matches(entry, name)
}

names_only(rule) if {
	count(values.collection_at(rule, ["ports"])) > 0
	every port in rule.ports {
		port.port == 53
		values.given_or(port, ["endPort"], 53) == 53
	}
}
