# METADATA
# title: Sizes
# description: How much there is of what an object may have any number of.
package lib.sizes

import data.lib.containers
import data.lib.pods
import data.lib.values
import data.lib.volumes

# METADATA
# description: >-
#   The numbers of containers and volumes, the characters of annotations and of commands, and the number of
#   variables of each container by its field path. The server counts them beforehand in input.sizes; without that
#   the same answer is computed here.
of_pod := input.sizes if {
	is_object(input.sizes)
} else := {
	"containers": count(containers.by_path),
	"volumes": count(volumes.by_path),
	"annotations": sum([size |
		some key, value in pods.metadata.annotations
		size := count(key) + count(values.text(value))
	]),
	"commands": sum([count(values.text(word)) |
		some container in containers.by_path
		some list in ["command", "args"]
		some word in container[list]
	]),
	"env": {path: count(values.collection_at(container, ["env"])) | some path, container in containers.by_path},
}
