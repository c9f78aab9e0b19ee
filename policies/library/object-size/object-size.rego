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

import data.lib.containers
import data.lib.pods
import data.lib.values

deny contains finding if {
	some name, counted in parts
	counted.number > most(name)
	finding := {
		"message": sprintf("there are %d %s, at most %d are allowed", [counted.number, counted.of, most(name)]),
		"field": counted.field,
		"value": counted.number,
	}
}

deny contains finding if {
	some path, container in containers.by_path
	number := count(values.collection_at(container, ["env"]))
	number > most("maxEnv")
	finding := {
		"message": sprintf("there are %d environment variables, at most %d are allowed", [number, most("maxEnv")]),
		"field": sprintf("%s.env", [path]),
		"value": number,
	}
}

parts := {
	"maxContainers": {"of": "containers", "field": pods.field("containers"), "number": count(containers.by_path)},
	"maxVolumes": {"of": "volumes", "field": pods.field("volumes"), "number": count(values.collection_at(pods.spec, ["volumes"]))},
	"maxAnnotationBytes": {
		"of": "bytes of annotations",
		"field": sprintf("%s.metadata.annotations", [pods.prefix]),
		"number": sum([size |
			some key, value in pods.metadata.annotations
			size := count(key) + count(values.text(value))
		]),
	},
	"maxCommandBytes": {
		"of": "bytes of commands",
		"field": pods.field("containers"),
		"number": sum([count(values.text(word)) |
			some container in containers.by_path
			some list in ["command", "args"]
			some word in container[list]
		]),
	},
}

most(name) := values.given_or(given, [name], 0)

default given := {}

given := input.parameters
