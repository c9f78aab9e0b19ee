# METADATA
# title: No devices by resource claim
# description: >-
#   Dynamic resource allocation hands devices of the node to a container, outside of what a sandboxed
#   runtime isolates.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
# custom:
#   id: dra
#   code: SBX-056
#   category: resources
#   severity: high
#   enforcement: Deny
#   remediation: Remove the resource claim, or use a ResourceClaimTemplate that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedTemplates:
#       description: Names of ResourceClaimTemplates that may be used.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.dra

import data.lib.containers
import data.lib.pods
import data.lib.values

deny contains finding if {
	some index, claim in pods.spec.resourceClaims
	not allowed(claim)
	finding := {
		"message": "the Sandbox asks for a device by resource claim",
		"field": sprintf("%s[%v]", [pods.field("resourceClaims"), index]),
		"value": values.given_or(claim, ["resourceClaimTemplateName"], values.given_or(claim, ["resourceClaimName"], "")),
		"content": ({claim} | users(claim)),
	}
}

# Who gets the device, and which part of the claim.
users(claim) := object.keys(object.get(used, values.string_at(claim, ["name"]), {}))

# For all claims at once: to look for each in all containers takes the product of both.
used := object.union_n([{name: {[values.string_at(container, ["name"]), use]: null}} |
	some container in containers.by_path
	some use in container.resources.claims
	name := values.given(use, ["name"])
])

allowed(claim) if {
	values.given(claim, ["resourceClaimTemplateName"]) in values.collection_at(input.parameters, ["allowedTemplates"])
	not values.given(claim, ["resourceClaimName"])
}
