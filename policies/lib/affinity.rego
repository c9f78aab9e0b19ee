# METADATA
# title: Affinity
# description: What a Pod says of the nodes that it wants beside its nodeSelector.
package lib.affinity

import data.lib.pods

# METADATA
# description: The terms by which nodes are chosen, required and preferred, by field path.
node_terms[path] := term if {
	some index, term in pods.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
	path := sprintf("%s.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%v]", [of_nodes, index])
}

node_terms[path] := entry.preference if {
	some index, entry in pods.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
	path := sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%v].preference", [of_nodes, index])
}

of_nodes := pods.field("affinity.nodeAffinity")
