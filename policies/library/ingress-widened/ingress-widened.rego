# METADATA
# title: The router is the way in
# description: >-
#   A template that names peers for ingress opens its Sandboxes past the router, which authorises and counts requests.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: ingress-widened
#   code: SBX-087
#   category: network
#   severity: medium
#   enforcement: Warn
#   remediation: Remove the peer, or ask the platform team to allow it.
#   kinds: [SandboxTemplate]
#   controls: ["CIS 5.3.2", "NSA:C-0030"]
#   parameters:
#     allowedPeers:
#       description: Peers that may connect, as NetworkPolicies name them; the first is the router as it is installed.
#       type: array
#       items: {type: object, minProperties: 1}
#       default:
#         - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: agent-sandbox-system}}
#           podSelector: {matchLabels: {app: sandbox-router}}
package policies.library.ingress_widened

import data.lib.cidrs
import data.lib.values

deny contains finding if {
	some index, rule in input.object.spec.networkPolicy.ingress
	count(values.collection_at(rule, ["from"])) == 0
	finding := {
		"message": "a rule without peers lets everybody in",
		"field": sprintf("spec.networkPolicy.ingress[%v].from", [index]),
		"value": values.given_or(rule, ["ports"], ""),
	}
}

deny contains finding if {
	some i, rule in input.object.spec.networkPolicy.ingress
	ports := cidrs.ports_of(rule)
	some j, peer in rule.from
	not allowed(peer)
	finding := {
		"message": "the peer is another than the router",
		"field": sprintf("spec.networkPolicy.ingress[%v].from[%v]", [i, j]),
		"value": peer,
		"content": ports,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(peer) if peer in input.parameters.allowedPeers
