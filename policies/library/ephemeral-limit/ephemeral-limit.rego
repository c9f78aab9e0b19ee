# METADATA
# title: Limits of scratch space
# description: >-
#   Logs, the writable layer of the image and emptyDirs share the disk of the node; a container without a limit fills it
#   and has its neighbours evicted. Kubernetes knows no limit of it for the Pod as a whole.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/ephemeral-storage/
# custom:
#   id: ephemeral-limit
#   code: SBX-051
#   category: resources
#   severity: low
#   enforcement: "Off"
#   remediation: Set resources.limits of ephemeral-storage.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
package policies.library.ephemeral_limit

import data.lib.containers
import data.lib.quantities
import data.lib.values

deny contains finding if {
	some path, container in containers.started
	not quantities.limited["ephemeral-storage"][path]
	finding := {
		"message": sprintf("%s has no limit of ephemeral-storage", [containers.label(container)]),
		"field": sprintf("%s.resources.limits.ephemeral-storage", [path]),
		"value": values.given_or(container, ["resources", "limits", "ephemeral-storage"], ""),
	}
}
