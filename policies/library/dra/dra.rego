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

import data.lib.pods
import data.lib.values

deny contains finding if {
	some index, claim in pods.spec.resourceClaims
	not allowed(claim)
	finding := {
		"message": "the Sandbox asks for a device by resource claim",
		"field": sprintf("%s[%v]", [pods.field("resourceClaims"), index]),
		"value": values.given_or(claim, ["resourceClaimTemplateName"], values.given_or(claim, ["resourceClaimName"], "")),
	}
}

allowed(claim) if {
	values.given(claim, ["resourceClaimTemplateName"]) in values.collection_at(input.parameters, ["allowedTemplates"])
	not values.given(claim, ["resourceClaimName"])
}
