# METADATA
# title: Labels and annotations
# description: What Pods get of labels and annotations, from their template and from what a claim adds.
package lib.labels

import data.lib.pods
import data.lib.values

# METADATA
# description: Each place that gives a Pod labels and annotations, with the paths of both.
of_pods := [
	{
		"labels": values.object_at(pods.metadata, ["labels"]),
		"annotations": values.object_at(pods.metadata, ["annotations"]),
		"path": sprintf("%s.metadata.labels", [pods.prefix]),
		"annotations_path": sprintf("%s.metadata.annotations", [pods.prefix]),
	},
	{
		"labels": values.object_at(input, ["object", "spec", "additionalPodMetadata", "labels"]),
		"annotations": values.object_at(input, ["object", "spec", "additionalPodMetadata", "annotations"]),
		"path": "spec.additionalPodMetadata.labels",
		"annotations_path": "spec.additionalPodMetadata.annotations",
	},
]

# METADATA
# description: The domain of a key, empty when it has none.
domain(key) := split(key, "/")[0] if {
	contains(key, "/")
} else := ""

# METADATA
# description: Whether a domain is another or lies below it.
below(name, parent) if name == parent

below(name, parent) if endswith(name, sprintf(".%s", [parent]))
