# METADATA
# title: Ceilings of resources
# description: >-
#   No container and no Sandbox asks for more than the ceiling, and every amount is one that Kubernetes
#   can read and not less than zero. Of a Sandbox counts what each container may use, be it by its limit or its
#   request, and the overhead of the runtime.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
# custom:
#   id: max-resources
#   code: SBX-052
#   category: resources
#   severity: medium
#   enforcement: Warn
#   remediation: Ask for less, or ask the platform team to raise the ceiling.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0303", "OWASP LLM10"]
#   parameters:
#     container:
#       description: The most that one container may ask for, by resource.
#       type: object
#       additionalProperties: {type: string, format: quantity}
#       default: {cpu: "16", memory: 64Gi, ephemeral-storage: 200Gi}
#     pod:
#       description: The most that the containers of a Sandbox may use together, by resource.
#       type: object
#       additionalProperties: {type: string, format: quantity}
#       default: {cpu: "32", memory: 128Gi, ephemeral-storage: 400Gi}
package policies.library.max_resources

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.totals

deny contains finding if {
	some fault in quantities.faults
	finding := of_amount(fault.owner, fault.bound, fault.resource, fault.reason)
}

deny contains finding if {
	some [path, bound, resource] in quantities.above(quantities.milli_of(input.parameters.container))
	path != pods.field_prefix
	finding := of_amount(path, bound, resource, sprintf("is more than %s", [input.parameters.container[resource]]))
}

# What the Pod says for all its containers is held to the ceiling of the Pod.
deny contains finding if {
	pods.spec.resources
	ceilings := quantities.milli_of(input.parameters.pod)
	some bound, amounts in quantities.resources[pods.field_prefix]
	some resource, quantity in amounts
	quantity.milli > ceilings[resource]
	finding := of_amount(pods.field_prefix, bound, resource, sprintf("is more than %s", [input.parameters.pod[resource]]))
}

deny contains finding if {
	ceilings := quantities.milli_of(input.parameters.pod)
	some resource, total in totals.by_resource
	total > ceilings[resource]
	finding := {
		"message": sprintf("the containers together may use more %s than %s", [resource, input.parameters.pod[resource]]),
		"field": pods.field("containers"),
		"value": quantities.text(total),
		"content": resource,
		"amount": total,
	}
}

of_amount(path, bound, resource, fault) := {
	"message": sprintf("the amount of %s %s", [resource, fault]),
	"field": field,
	"value": written,
	"amount": object.get(quantities.at(field, written), "milli", 0),
} if {
	field := sprintf("%s.resources.%s.%s", [path, bound, resource])
	written := containers.owners[path].resources[bound][resource]
}
