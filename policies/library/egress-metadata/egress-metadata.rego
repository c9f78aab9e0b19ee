# METADATA
# title: No egress to metadata services
# description: >-
#   Metadata services of clouds hand out the credentials of the node. Some of their addresses are
#   outside of the private ranges.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: egress-metadata
#   code: SBX-083
#   category: network
#   severity: critical
#   enforcement: Warn
#   remediation: Add the address to except.
#   kinds: [SandboxTemplate]
#   controls: ["OWASP LLM02"]
#   parameters:
#     metadataCIDRs:
#       description: Ranges of metadata services.
#       type: array
#       items: {type: string, format: cidr}
#       default:
#         - 169.254.169.254/32
#         - 169.254.170.2/32
#         - 169.254.170.23/32
#         - 168.63.129.16/32
#         - 100.100.100.200/32
#         - fd00:ec2::254/128
#         - fd00:ec2::23/128
#         - 64:ff9b::/96
package policies.library.egress_metadata

import data.lib.cidrs

deny contains finding if {
	some path, block in cidrs.blocks
	cidrs.family(block.cidr)
	some target in input.parameters.metadataCIDRs
	net.cidr_intersects(block.cidr, target)
	not cidrs.spared(target, block)
	finding := {
		"message": sprintf("the range covers the metadata service at %s", [target]),
		"field": sprintf("%s.except", [path]),
		"value": cidrs.without(block, target),
		"content": cidrs.ports[path],
	}
}

deny contains finding if {
	some path, text in cidrs.unreadable
	finding := {
		"message": "the range cannot be read and may cover a metadata service: write its first address without leading zeros",
		"field": path,
		"value": text,
	}
}
