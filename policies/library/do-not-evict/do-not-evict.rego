# METADATA
# title: Nodes can be emptied
# description: >-
#   A Pod that forbids autoscalers to move it keeps its node from being upgraded and from being given back.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/
# custom:
#   id: do-not-evict
#   code: SBX-096
#   category: scheduling
#   severity: low
#   enforcement: "Off"
#   remediation: Remove the annotation, or ask the platform team to allow it.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     allowed:
#       description: Annotations that may be set all the same.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.do_not_evict

import data.lib.labels

deny contains finding if {
	some path, annotations in labels.annotations_of_pods
	some key, harmless in keys
	value := annotations[key]
	value != harmless
	not allowed(key)
	finding := {
		"message": "the Pod keeps its node from being emptied",
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}

keys := {
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
	"karpenter.sh/do-not-disrupt": "false",
	"karpenter.sh/do-not-evict": "false",
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(key) if key in input.parameters.allowed
