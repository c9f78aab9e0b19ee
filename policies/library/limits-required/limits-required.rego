# METADATA
# title: Limits of CPU and memory
# description: >-
#   A container without a limit may take all of the node from its neighbours. A limit of the Pod as a
#   whole serves too where podLevelResources says that the cluster keeps it: before Kubernetes 1.34 it drops the
#   field, and of other resources than these and huge pages it knows none. Zero means no limit to Kubernetes, so it counts as missing.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
# custom:
#   id: limits-required
#   code: SBX-050
#   category: resources
#   severity: medium
#   enforcement: Warn
#   remediation: Set the limit on the container, or for all of them on the Pod where podLevelResources says that it is kept.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["NSA:C-0270", "NSA:C-0271", "C-0311", "OWASP LLM10"]
#   parameters:
#     resources:
#       description: The resources that need a limit.
#       type: array
#       items: {type: string, minLength: 1}
#       minItems: 1
#       default: [cpu, memory]
#     podLevelResources:
#       description: Whether every cluster with these rules honours resources of the Pod as a whole, as Kubernetes 1.34 and later do by default.
#       type: boolean
#       default: false
package policies.library.limits_required

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.values

deny contains finding if {
	some resource in required
	some path in (containers.started_paths - object.get(quantities.limited, resource, set()))
	not limited_by_pod(resource)
	container := containers.by_path[path]
	finding := {
		"message": sprintf("%s has no %s limit", [containers.label(container), resource]),
		"field": sprintf("%s.resources.limits.%s", [path, resource]),
		"value": values.given_or(container, ["resources", "limits", resource], ""),
	}
}

default required := ["cpu", "memory"]

required := values.given(input.parameters, ["resources"])

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
limited_by_pod(resource) if {
	input.parameters.podLevelResources == true
	regex.match(`^(cpu|memory|hugepages-.*)$`, resource)
	quantities.limited[resource][pods.field_prefix]
}
