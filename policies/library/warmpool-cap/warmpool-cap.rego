# METADATA
# title: Pools up to a size
# description: >-
#   Every member of a pool runs and costs before anybody asks for it.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/
# custom:
#   id: warmpool-cap
#   code: SBX-061
#   category: resources
#   severity: medium
#   enforcement: Warn
#   remediation: Lower spec.replicas, or ask the platform team to raise the ceiling.
#   kinds: [SandboxWarmPool]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxReplicas:
#       description: The largest pool.
#       type: integer
#       minimum: 0
#       default: 50
#     byNamespace:
#       description: The largest pool in some namespaces, by their name.
#       type: object
#       additionalProperties: {type: integer, minimum: 0}
#       default: {}
package policies.library.warmpool_cap

import data.lib.values

deny contains finding if {
	value := input.object.spec.replicas
	value != null
	most := ceiling
	not within(value, most)
	finding := {
		"message": sprintf("the pool is larger than %d", [most]),
		"field": "spec.replicas",
		"value": value,
		"amount": value,
	}
}

within(value, most) if {
	is_number(value)
	value <= most
}

ceiling := values.given_or(given, ["byNamespace", namespace], values.given_or(given, ["maxReplicas"], 0))

default namespace := ""

namespace := input.namespace.name

default given := {}

given := input.parameters
