# METADATA
# title: Bounded objects
# description: >-
#   Objects with very many parts burden the cluster and everything that judges them.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/
# custom:
#   id: object-size
#   code: SBX-057
#   category: resources
#   severity: medium
#   enforcement: Warn
#   remediation: Split the Sandbox, or mount files instead of long values.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxContainers:
#       description: Containers of all lists together.
#       type: integer
#       minimum: 1
#       default: 10
#     maxVolumes:
#       description: Volumes of the Pod.
#       type: integer
#       minimum: 1
#       default: 20
#     maxEnv:
#       description: Environment variables of one container.
#       type: integer
#       minimum: 1
#       default: 100
#     maxAnnotationBytes:
#       description: Keys and values of the Pod's annotations.
#       type: integer
#       minimum: 1
#       default: 16384
#     maxCommandBytes:
#       description: Commands and arguments of all containers together.
#       type: integer
#       minimum: 1
#       default: 65536
package policies.library.object_size

import data.lib.pods
import data.lib.sizes

deny contains finding if {
	size := sizes.of_pod
	bounds := most
	some name, part in parts
	number := size[part.size]
	number > bounds[name]
	finding := {
		"message": sprintf("there are %d %s, at most %d are allowed", [number, part.of, most[name]]),
		"field": sprintf("%s.%s", [pods.prefix, part.field]),
		"value": number,
		"content": name,
		"amount": number,
	}
}

deny contains finding if {
	some path, number in sizes.env_above(most.maxEnv)
	finding := {
		"message": sprintf("there are %d environment variables, at most %d are allowed", [number, most.maxEnv]),
		"field": sprintf("%s.env", [path]),
		"value": number,
		"amount": number,
	}
}

parts := {
	"maxContainers": {"size": "containers", "of": "containers", "field": "spec.containers"},
	"maxVolumes": {"size": "volumes", "of": "volumes", "field": "spec.volumes"},
	"maxAnnotationBytes": {"size": "annotations", "of": "bytes of annotations", "field": "metadata.annotations"},
	"maxCommandBytes": {"size": "commands", "of": "bytes of commands", "field": "spec.containers"},
}

default most := {"maxContainers": 0, "maxVolumes": 0, "maxEnv": 0, "maxAnnotationBytes": 0, "maxCommandBytes": 0}

most := input.parameters
