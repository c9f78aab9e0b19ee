# METADATA
# title: Namespaces for Sandboxes
# description: >-
#   Code that nobody reviewed does not run beside the platform, and where it is asked for, only in namespaces that somebody
#   opened for it by a label.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
# custom:
#   id: namespace-allowed
#   code: SBX-097
#   category: metadata
#   severity: medium
#   enforcement: "Off"
#   remediation: Use a namespace of your own, or ask the platform team to open this one.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.7.1", "CIS 5.7.4"]
#   parameters:
#     denied:
#       description: Namespaces that hold no Sandboxes; a * at the end or the beginning stands for anything.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [kube-*, agent-sandbox-system]
#     optInLabel:
#       description: A label, by key or as key=value, that a namespace for Sandboxes has; empty when none is needed.
#       type: string
#       default: ""
package policies.library.namespace_allowed

import data.lib.values

deny contains finding if {
	name := input.namespace.name
	some entry in input.parameters.denied
	values.matches(entry, name)
	finding := {
		"message": "the namespace is not one for Sandboxes",
		"field": "metadata.namespace",
		"value": name,
	}
}

deny contains finding if {
	label := input.parameters.optInLabel
	label != ""
	not opened(label)
	finding := {
		"message": sprintf("the namespace lacks the label %s", [label]),
		"field": "metadata.namespace",
		"value": namespace,
	}
}

default namespace := ""

namespace := input.namespace.name

opened(label) if {
	some key, value in input.namespace.labels
	label in {key, sprintf("%s=%s", [key, value])}
}
