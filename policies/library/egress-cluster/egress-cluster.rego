# METADATA
# title: No egress into the cluster
# description: >-
#   The addresses of Pods, Services, nodes and the control plane lie in public ranges on some clouds, so that leaving out
#   the private ranges is not enough. A peer by selector is no address: see egress-namespaces.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: egress-cluster
#   code: SBX-084
#   category: network
#   severity: high
#   enforcement: "Off"
#   remediation: Add the range of the cluster to except.
#   kinds: [SandboxTemplate]
#   controls: ["NSA:C-0054"]
#   at_least_one: [clusterCIDRs]
#   parameters:
#     clusterCIDRs:
#       description: Ranges of the cluster's Pods, Services, nodes and control plane.
#       type: array
#       items: {type: string, format: cidr}
#       default: []
package policies.library.egress_cluster

import data.lib.cidrs

deny contains finding if {
	some path, block in cidrs.blocks
	cidrs.family(block.cidr)
	some target in input.parameters.clusterCIDRs
	net.cidr_intersects(block.cidr, target)
	not cidrs.spared(target, block)
	finding := {
		"message": sprintf("the range covers addresses of the cluster in %s", [target]),
		"field": sprintf("%s.except", [path]),
		"value": cidrs.without(block, target),
		"content": cidrs.ports[path],
	}
}

deny contains finding if {
	some path, text in cidrs.unreadable
	finding := {
		"message": "the range cannot be read and may cover addresses of the cluster: write its first address without leading zeros",
		"field": path,
		"value": text,
	}
}
