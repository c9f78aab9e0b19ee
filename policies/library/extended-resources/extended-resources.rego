# METADATA
# title: Devices from a list
# description: >-
#   Devices and huge pages cost much and widen what untrusted code can attack; a container asks only for
#   those that are allowed.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
# custom:
#   id: extended-resources
#   code: SBX-055
#   category: resources
#   severity: high
#   enforcement: Warn
#   remediation: Remove the resource, or ask the platform team to allow it.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     allowed:
#       description: Resources that may be asked for, besides cpu, memory and ephemeral-storage.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.extended_resources

import data.lib.containers
import data.lib.quantities

deny contains finding if {
	some resource, _ in quantities.highest
	not resource in {"cpu", "memory", "ephemeral-storage"}
	not allowed(resource)
	some path, bounds in quantities.resources
	some bound, amounts in bounds
	amounts[resource]
	finding := {
		"message": sprintf("the resource %s is not allowed", [resource]),
		"field": sprintf("%s.resources.%s.%s", [path, bound, resource]),
		"value": containers.owners[path].resources[bound][resource],
		"amount": object.get(amounts[resource], "milli", 0),
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(resource) if resource in input.parameters.allowed
