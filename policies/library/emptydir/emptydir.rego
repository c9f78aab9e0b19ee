# METADATA
# title: Bounded scratch space
# description: >-
#   An emptyDir without a limit fills the disk of the node, one in memory the memory of the Sandbox.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/
# custom:
#   id: emptydir
#   code: SBX-054
#   category: resources
#   severity: medium
#   enforcement: "Off"
#   remediation: Set emptyDir.sizeLimit within the ceiling.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxSize:
#       description: The largest limit on disk.
#       type: string
#       format: quantity
#       default: 50Gi
#     maxMemorySize:
#       description: The largest limit in memory.
#       type: string
#       format: quantity
#       default: 4Gi
package policies.library.emptydir

import data.lib.quantities
import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	directory := volume.emptyDir
	directory != null
	field := sprintf("%s.emptyDir.sizeLimit", [path])
	not bounded(field, directory)
	finding := {
		"message": sprintf("%s has no size limit within %s", [volumes.label(volume), object.get(given, parameter(directory), "0")]),
		"field": field,
		"value": values.given_or(directory, ["sizeLimit"], ""),
		"content": parameter(directory),
		"amount": size(field, values.given_or(directory, ["sizeLimit"], 0)),
	}
}

deny contains finding if {
	some path, volume in volumes.by_path
	value := volume.emptyDir.medium
	not value in {null, "", "Memory"}
	finding := {
		"message": sprintf("%s is of a medium other than disk and memory", [volumes.label(volume)]),
		"field": sprintf("%s.emptyDir.medium", [path]),
		"value": value,
	}
}

bounded(field, directory) if {
	milli := quantities.at(field, directory.sizeLimit).milli
	milli > 0
	milli <= most[parameter(directory)]
}

# Without a limit, and with one of nothing, there is no end.
size(field, limit) := 1e300 if {
	quantities.at(field, limit).milli == 0
} else := object.get(quantities.at(field, limit), "milli", 0)

parameter(directory) := "maxMemorySize" if {
	directory.medium == "Memory"
} else := "maxSize"

most := quantities.milli_of(given)

default given := {}

given := input.parameters
