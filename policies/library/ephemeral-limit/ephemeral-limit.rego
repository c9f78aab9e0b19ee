# METADATA
# title: Limits of scratch space
# description: >-
#   Logs, the writable layer of the image and emptyDirs share the disk of the node; a container without a limit fills it
#   and has its neighbours evicted. A limit of the Pod as a whole serves too where podLevelResources says that the
#   cluster keeps it: before Kubernetes 1.34 it drops the field.
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
#   parameters:
#     podLevelResources:
#       description: Whether every cluster with these rules honours resources of the Pod as a whole, as Kubernetes 1.34 and later do by default.
#       type: boolean
#       default: false
package policies.library.ephemeral_limit

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.values

deny contains finding if {
	not limited_by_pod
	some path, container in containers.started
	not quantities.limited["ephemeral-storage"][path]
	finding := {
		"message": sprintf("%s has no limit of ephemeral-storage", [containers.label(container)]),
		"field": sprintf("%s.resources.limits.ephemeral-storage", [path]),
		"value": values.given_or(container, ["resources", "limits", "ephemeral-storage"], ""),
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
limited_by_pod if {
	input.parameters.podLevelResources == true
	quantities.limited["ephemeral-storage"][pods.field_prefix]
}
