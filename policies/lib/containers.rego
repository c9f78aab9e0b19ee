# METADATA
# title: Containers
# description: Every container of every list of the Pod, by its field path.
package lib.containers

import data.lib.pods
import data.lib.values

# METADATA
# description: The lists that a container may be in; sidecars are initContainers that restart.
lists := ["containers", "initContainers", "ephemeralContainers"]

# METADATA
# description: >-
#   Containers by field path; something that is not an object counts as an empty container. The server
#   lists them beforehand in input.containers; without that the same answer is computed here.
by_path := input.containers if {
	is_object(input.containers)
} else := {path: container |
	some list in lists
	some index, member in values.collection_at(pods.spec, [list])
	path := sprintf("%s.spec.%s[%v]", [pods.prefix, list, index])
	container := values.as_object(member)
}

# METADATA
# description: >-
#   Who may have a securityContext and resources, by field path: every container, and these two fields of the
#   Pod's spec. The server lists them beforehand in input.owners; without that the same answer is computed here.
owners := input.owners if {
	is_object(input.owners)
} else := object.union(by_path, {pods.field_prefix: object.filter(pods.spec, ["securityContext", "resources"])})

# METADATA
# description: Containers that run on their own when the Pod starts, by field path.
started := by_path if {
	not pods.spec.ephemeralContainers
} else := {path: container |
	some path, container in by_path
	not contains(path, ".spec.ephemeralContainers[")
}

# METADATA
# description: >-
#   The field paths of the containers that run on their own when the Pod starts. The server lists them beforehand
#   in input.started; without that the same answer is computed here.
started_paths := input.started if {
	is_set(input.started)
} else := object.keys(started)

# METADATA
# description: How a message names the container.
label(container) := sprintf("container %q", [name]) if {
	name := values.string_at(container, ["name"])
	name != ""
} else := "a container without a name"
