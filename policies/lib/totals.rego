# METADATA
# title: Totals
# description: What the containers of a Pod may use together.
package lib.totals

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.values

# METADATA
# description: >-
#   What the Pod may use, in milli, by resource: of each container its limit, or what it requests where that is more or
#   there is no limit. Init containers run one by one beside the sidecars, and before the containers; the overhead of the
#   runtime comes to that. The server adds it up beforehand in input.totals; without that the same answer is computed here.
by_resource := input.totals if {
	is_object(input.totals)
} else := {resource: total |
	some resource in asked
	total := (uses(resource, sidecars) + max([uses(resource, main), largest(resource)])) + object.get(overhead, resource, 0)
}

asked contains resource if {
	some path, _ in containers.started
	some amounts in quantities.resources[path]
	some resource, _ in amounts
}

asked contains resource if some resource, _ in overhead

overhead := {resource: max({0, milli}) |
	some resource, written in values.object_at(pods.spec, ["overhead"])
	written != null
	milli := object.get(quantities.at(sprintf("%s.overhead.%s", [pods.field_prefix, resource]), written), "milli", 0)
}

uses(resource, paths) := sum([most(path, resource) | some path in paths])

largest(resource) := max({0} | {most(path, resource) | some path in init})

most(path, resource) := max({0} | {amounts[resource].milli | some amounts in quantities.resources[path]})

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
