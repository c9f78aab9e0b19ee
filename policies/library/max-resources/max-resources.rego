# METADATA
# title: Ceilings of resources
# description: >-
#   No container and no Sandbox asks for more than the ceiling, and every amount is one that Kubernetes
#   can read and not less than zero.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
# custom:
#   id: max-resources
#   code: SBX-052
#   category: resources
#   severity: medium
#   enforcement: Warn
#   remediation: Ask for less, or ask the platform team to raise the ceiling.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0303"]
#   parameters:
#     container:
#       description: The most that one container may ask for, by resource.
#       type: object
#       additionalProperties: {type: string, minLength: 1}
#       default: {cpu: "16", memory: 64Gi, ephemeral-storage: 200Gi}
#     pod:
#       description: The most that the containers of a Sandbox may use together, by resource.
#       type: object
#       additionalProperties: {type: string, minLength: 1}
#       default: {cpu: "32", memory: 128Gi, ephemeral-storage: 400Gi}
package policies.library.max_resources

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.values

deny contains finding if {
	some path, bounds in quantities.resources
	some bound, amounts in bounds
	some resource, quantity in amounts
	fault := wrong(resource, quantity)
	finding := {
		"message": sprintf("the amount of %s %s", [resource, fault]),
		"field": sprintf("%s.resources.%s.%s", [path, bound, resource]),
		"value": containers.owners[path].resources[bound][resource],
	}
}

deny contains finding if {
	some resource, most in ceilings("pod")
	total(resource) > most.milli
	written := input.parameters.pod[resource]
	finding := {
		"message": sprintf("the containers together may use more %s than %s", [resource, written]),
		"field": pods.field("containers"),
		"value": "",
	}
}

wrong(_, quantity) := quantity.error

wrong(_, quantity) := "is less than zero" if quantity.milli < 0

wrong(resource, quantity) := sprintf("is more than %s", [input.parameters.container[resource]]) if {
	quantity.milli > of_a_container[resource].milli
}

of_a_container := ceilings("container")

ceilings(of) := {resource: quantities.of(most) | some resource, most in values.object_at(input.parameters, [of])}

# Init containers run one by one beside the sidecars, and before the containers.
total(resource) := limits(resource, sidecars) + max([limits(resource, main), largest(resource)])

limits(resource, paths) := sum([quantities.resources[path].limits[resource].milli | some path in paths])

largest(resource) := max({0} | {quantities.resources[path].limits[resource].milli | some path in init})

init contains path if {
	some path, container in containers.started
	contains(path, ".initContainers[")
	not restarts(container)
}

sidecars contains path if {
	some path, container in containers.started
	contains(path, ".initContainers[")
	restarts(container)
}

main := (object.keys(containers.started) - init) - sidecars

restarts(container) if container.restartPolicy == "Always"
