# METADATA
# title: Labels and annotations
# description: What Pods get of labels and annotations, from their template and from what a claim adds.
package lib.labels

import data.lib.pods
import data.lib.values

# METADATA
# description: >-
#   The labels that a Pod gets, by the field path of the mapping that gives them. The server lists them beforehand
#   in input.pod_labels; without that the same answer is computed here.
of_pods := input.pod_labels if {
	is_object(input.pod_labels)
} else := mappings("labels")

# METADATA
# description: >-
#   The annotations that a Pod gets, by the field path of the mapping that gives them. The server lists them
#   beforehand in input.pod_annotations; without that the same answer is computed here.
annotations_of_pods := input.pod_annotations if {
	is_object(input.pod_annotations)
} else := mappings("annotations")

mappings(name) := object.union(
	{path: mapping | mapping := pods.metadata[name]; path := sprintf("%s.metadata.%s", [pods.prefix, name])},
	{path: mapping |
		mapping := pods.object_spec.additionalPodMetadata[name]
		path := sprintf("spec.additionalPodMetadata.%s", [name])
	},
)

# METADATA
# description: The domain of a key, empty when it has none.
domain(key) := split(key, "/")[0] if {
	contains(key, "/")
} else := ""

# METADATA
# description: Whether a domain is another or lies below it.
below(name, parent) if name == parent

below(name, parent) if endswith(name, sprintf(".%s", [parent]))

# METADATA
# description: Whether a label selector selects what has the labels; an empty one selects everything.
selects(selector, labels) if {
	every key, value in values.object_at(selector, ["matchLabels"]) {
		labels[key] == value
	}
	every expression in values.collection_at(selector, ["matchExpressions"]) {
		holds(expression, labels)
	}
}

holds(expression, labels) if {
	expression.operator == "In"
	listed(expression, labels)
}

holds(expression, labels) if {
	expression.operator == "NotIn"
	not listed(expression, labels)
}

holds(expression, labels) if {
	expression.operator == "Exists"
	labels[expression.key] != null
}

holds(expression, labels) if {
	expression.operator == "DoesNotExist"
	not labels[expression.key]
}

listed(expression, labels) if labels[expression.key] in expression.values
