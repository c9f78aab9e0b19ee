# METADATA
# title: Totals
# description: What the containers of a Pod may use together.
package lib.totals

import data.lib.containers
import data.lib.quantities

# METADATA
# description: >-
#   What the containers of the Pod may use together, in milli, by resource: init containers run one by one
#   beside the sidecars, and before the containers. The server adds it up beforehand in input.totals; without
#   that the same answer is computed here.
by_resource := input.totals if {
	is_object(input.totals)
} else := {resource: total |
	some path, _ in containers.started
	some resource, _ in quantities.resources[path].limits
	total := limits(resource, sidecars) + max([limits(resource, main), largest(resource)])
}

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
