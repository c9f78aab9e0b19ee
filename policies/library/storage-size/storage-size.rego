# METADATA
# title: Bounded storage
# description: >-
#   Volumes outlive the Pod, and so does what they cost.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
# custom:
#   id: storage-size
#   code: SBX-076
#   category: storage
#   severity: medium
#   enforcement: Warn
#   remediation: Ask for less, or ask the platform team to raise the ceiling.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxSize:
#       description: The largest volume.
#       type: string
#       format: quantity
#       default: 100Gi
#     maxTotal:
#       description: The most that the volumes of one object may ask for together.
#       type: string
#       format: quantity
#       default: 500Gi
#     maxCount:
#       description: The most volumes of one object.
#       type: integer
#       minimum: 0
#       default: 10
package policies.library.storage_size

import data.lib.quantities
import data.lib.sizes
import data.lib.values
import data.lib.volumes

deny contains found(path) if {
	some path, milli in quantities.requested
	milli <= 0
}

deny contains found(path) if {
	some path, milli in quantities.requested
	milli > most.maxSize
}

deny contains finding if {
	sizes.of_pod.requested > most.maxTotal
	finding := {
		"message": sprintf("the volumes together are larger than %s", [given.maxTotal]),
		"field": volumes.templates_field,
		"value": quantities.text(sizes.of_pod.requested),
		"amount": sizes.of_pod.requested,
	}
}

deny contains finding if {
	number := sizes.of_pod.claims
	number > given.maxCount
	finding := {
		"message": sprintf("there are %d volumes, at most %d are allowed", [number, given.maxCount]),
		"field": volumes.templates_field,
		"value": number,
		"content": "number",
		"amount": number,
	}
}

found(path) := {
	"message": sprintf("the size is not one up to %s", [values.text(given.maxSize)]),
	"field": sprintf("%s.resources.requests.storage", [path]),
	"value": values.given_or(volumes.claims[path], ["resources", "requests", "storage"], ""),
	"amount": quantities.requested[path],
}

most := quantities.milli_of(given)

default given := {"maxSize": "0", "maxTotal": "0", "maxCount": 0}

given := input.parameters
