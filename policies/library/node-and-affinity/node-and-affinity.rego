# METADATA
# title: No choice of nodes and neighbours
# description: >-
#   A Sandbox that chooses its node, or the Pods beside which it runs, can sit beside whom it wants to spy on. It may ask
#   for nodes by known labels, and for neighbours of its own namespace.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
# custom:
#   id: node-and-affinity
#   code: SBX-068
#   category: scheduling
#   severity: medium
#   enforcement: "Off"
#   remediation: Remove it, or ask the platform team to allow the label.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedKeys:
#       description: Labels of nodes by which a Sandbox may choose.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [kubernetes.io/arch, kubernetes.io/os, topology.kubernetes.io/region, topology.kubernetes.io/zone]
package policies.library.node_and_affinity

import data.lib.affinity
import data.lib.pods
import data.lib.values

deny contains finding if {
	some key, wanted in pods.spec.nodeSelector
	not allowed(key)
	finding := chosen(sprintf("%s[%s]", [pods.field("nodeSelector"), key]), key, wanted)
}

deny contains finding if {
	some path, term in affinity.node_terms
	some list in ["matchExpressions", "matchFields"]
	some index, requirement in term[list]
	key := values.given_or(requirement, ["key"], "")
	not allowed(key)
	finding := chosen(sprintf("%s.%s[%v].key", [path, list, index]), key, requirement)
}

deny contains finding if {
	some path, term in pod_terms
	rest := crypto.sha256(json.marshal(object.remove(values.as_object(term), ["namespaces"])))
	some index, name in term.namespaces
	not own(name)
	finding := neighbours(sprintf("%s.namespaces[%v]", [path, index]), name, rest)
}

deny contains finding if {
	some path, term in pod_terms
	term.namespaceSelector != null
	finding := neighbours(sprintf("%s.namespaceSelector", [path]), "", term)
}

required := "requiredDuringSchedulingIgnoredDuringExecution"

preferred := "preferredDuringSchedulingIgnoredDuringExecution"

pod_terms[path] := term if {
	some kind in ["podAffinity", "podAntiAffinity"]
	some index, term in pods.spec.affinity[kind][required]
	path := sprintf("%s.%s.%s[%v]", [pods.field("affinity"), kind, required, index])
}

pod_terms[path] := entry.podAffinityTerm if {
	some kind in ["podAffinity", "podAntiAffinity"]
	some index, entry in pods.spec.affinity[kind][preferred]
	path := sprintf("%s.%s.%s[%v].podAffinityTerm", [pods.field("affinity"), kind, preferred, index])
}

chosen(field, key, content) := {
	"message": sprintf("nodes are chosen by %q, which is not a label that is allowed", [values.text(key)]),
	"field": field,
	"value": key,
	"content": content,
}

neighbours(field, name, term) := {
	"message": "the Sandbox chooses its node by Pods of other namespaces",
	"field": field,
	"value": name,
	"content": term,
}

# Apart from the rules: within them, absent parameters would leave the whole rule undefined.
allowed(key) if key in input.parameters.allowedKeys

own(name) if name == input.namespace.name
