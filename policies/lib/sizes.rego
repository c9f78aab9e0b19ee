# METADATA
# title: Sizes
# description: How much there is of what an object may have any number of.
package lib.sizes

import data.lib.containers
import data.lib.pods
import data.lib.quantities
import data.lib.values
import data.lib.volumes

# METADATA
# description: >-
#   The numbers of containers, volumes and volume claims, the bytes of annotations and of commands, the variables
#   of the container that has the most, and the storage that all claims request, in milli. The server counts them
#   beforehand in input.sizes; without that the same answer is computed here.
of_pod := input.sizes if {
	is_object(input.sizes)
} else := {
	"containers": count(containers.by_path),
	"volumes": count(volumes.by_path),
	"claims": count(volumes.claims),
	"requested": sum([milli | some milli in quantities.requested]),
	"annotations": sum([size |
		some key, value in pods.metadata.annotations
		size := values.bytes(key) + values.bytes(values.text(value))
	]),
	"commands": sum([values.bytes(values.text(word)) |
		some container in containers.by_path
		some list in ["command", "args"]
		some word in container[list]
	]),
	"env": max({0} | {count(values.collection_at(container, ["env"])) | some container in containers.by_path}),
}

# METADATA
# description: The numbers of variables of the containers that have more than so many, by field path.
env_above(most) := {path: number |
	of_pod.env > most
	some path, container in containers.by_path
	number := count(values.collection_at(container, ["env"]))
	number > most
}
