# METADATA
# title: No labels of others
# description: >-
#   A Service or NetworkPolicy of somebody else selects Pods by their labels: a label that means
#   something to them is a way in.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
# custom:
#   id: pod-labels
#   code: SBX-094
#   category: metadata
#   severity: high
#   enforcement: Warn
#   remediation: Remove the label, or use a key with a domain of your own.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     reserved:
#       description: Labels that may not be set, by key or as key=value.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [app=sandbox-router, sidecar.istio.io/inject, istio.io/rev, linkerd.io/inject, k8s-app]
#     requireDomain:
#       description: Whether a key needs a domain, so that it means nothing to others by accident.
#       type: boolean
#       default: false
package policies.library.pod_labels

import data.lib.labels

deny contains finding if {
	some path, given in labels.of_pods
	some key, value in given
	reserved(key, value)
	finding := {
		"message": sprintf("the label %s is reserved", [key]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}

deny contains finding if {
	input.parameters.requireDomain == true
	some path, given in labels.of_pods
	some key, value in given
	labels.domain(key) == ""
	finding := {
		"message": sprintf("the label %s has no domain", [key]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}

reserved(key, value) if {
	some entry in input.parameters.reserved
	entry in {key, sprintf("%s=%s", [key, value])}
}
