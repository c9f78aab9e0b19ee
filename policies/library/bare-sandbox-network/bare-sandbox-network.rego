# METADATA
# title: No Sandbox without a NetworkPolicy
# description: >-
#   A template's NetworkPolicy selects the Sandboxes that are made of the template. One that a user makes directly
#   has none, unless the platform gives every Sandbox one, which ours does.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: bare-sandbox-network
#   code: SBX-081
#   category: network
#   severity: high
#   enforcement: Warn
#   remediation: Claim the Sandbox from a pool, whose template has a NetworkPolicy.
#   kinds: [Sandbox]
#   controls: ["CIS 5.3.2"]
#   parameters:
#     generate:
#       description: Whether the platform makes a NetworkPolicy for every Sandbox, as the controller of this project does.
#       type: boolean
#       default: true
package policies.library.bare_sandbox_network

import data.lib.owners

deny contains finding if {
	input.kind == "Sandbox"
	not input.parameters.generate == true
	not owners.ours
	finding := {
		"message": "the Sandbox is made directly, so no NetworkPolicy selects its Pod",
		"field": "spec.podTemplate",
		"value": "",
	}
}
