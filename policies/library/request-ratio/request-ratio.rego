# METADATA
# title: Requests near limits
# description: >-
#   The scheduler counts what is requested. Pods that may use many times as much as they request fill a node that looks
#   empty. What is not requested counts as its limit.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
# custom:
#   id: request-ratio
#   code: SBX-053
#   category: resources
#   severity: low
#   enforcement: "Off"
#   remediation: Raise the request or lower the limit.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxRatio:
#       description: How many times its request a limit may be, by resource.
#       type: object
#       additionalProperties: {type: number, minimum: 1}
#       default: {cpu: 10, memory: 4}
package policies.library.request_ratio

import data.lib.containers
import data.lib.quantities

deny contains finding if {
	some path, bounds in quantities.resources
	some resource, ratio in input.parameters.maxRatio
	limit := bounds.limits[resource].milli
	request := bounds.requests[resource].milli
	limit > request * ratio
	finding := {
		"message": sprintf("the limit of %s is more than %v times its request", [resource, ratio]),
		"field": sprintf("%s.resources.requests.%s", [path, resource]),
		"value": containers.owners[path].resources.requests[resource],
		"content": of_nothing(limit, request),
		"amount": times(limit, request),
	}
}

times(limit, request) := limit / request if {
	request > 0
} else := 0

of_nothing(limit, request) := limit if {
	request <= 0
} else := ""
