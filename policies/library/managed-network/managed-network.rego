# METADATA
# title: Networks stay managed
# description: >-
#   Switching management off deletes the network policy of a template, and with it what keeps its
#   Sandboxes apart.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: managed-network
#   code: SBX-080
#   category: network
#   severity: high
#   enforcement: Warn
#   remediation: Leave networkPolicyManagement out or set it to Managed.
#   kinds: [SandboxTemplate]
#   controls: ["C-0314", "CIS 5.3.2", "NSA:C-0030"]
#   parameters:
#     allowNamespaces:
#       description: Namespaces whose networks something else manages.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.managed_network

deny contains finding if {
	value := input.object.spec.networkPolicyManagement
	not value in {null, "", "Managed"}
	not exempt
	finding := {
		"message": "nobody manages the network policy of the template",
		"field": "spec.networkPolicyManagement",
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
exempt if input.namespace.name in input.parameters.allowNamespaces
