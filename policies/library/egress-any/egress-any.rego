# METADATA
# title: No egress to everywhere
# description: >-
#   A rule without a peer, or with one that covers everything, allows every address; so do halves that
#   cover it together, since rules add up.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: egress-any
#   code: SBX-082
#   category: network
#   severity: high
#   enforcement: Warn
#   remediation: Name what the Sandboxes have to reach, and leave out the private ranges by except.
#   kinds: [SandboxTemplate]
#   controls: ["C-0301", "OWASP LLM06"]
#   parameters:
#     minPrefix:
#       description: Shorter prefixes of IPv4 count as everything.
#       type: integer
#       minimum: 0
#       maximum: 32
#       default: 8
#     minPrefixIPv6:
#       description: Shorter prefixes of IPv6 count as everything.
#       type: integer
#       minimum: 0
#       maximum: 128
#       default: 16
#     requiredExcepts:
#       description: What a range that covers everything has to leave out where it reaches that far.
#       type: array
#       items: {type: string, format: cidr}
#       default: [10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16, "fc00::/7", "fe80::/10"]
package policies.library.egress_any

import data.lib.cidrs
import data.lib.values

deny contains finding if {
	some index, rule in input.object.spec.networkPolicy.egress
	count(values.collection_at(rule, ["to"])) == 0
	finding := {
		"message": "a rule without peers allows every address",
		"field": sprintf("spec.networkPolicy.egress[%v].to", [index]),
		"value": values.given_or(rule, ["ports"], ""),
	}
}

deny contains finding if {
	some i, rule in input.object.spec.networkPolicy.egress
	some j, peer in rule.to
	values.as_object(peer) == {}
	finding := {
		"message": "an empty peer allows every address",
		"field": sprintf("spec.networkPolicy.egress[%v].to[%v]", [i, j]),
		"value": values.given_or(rule, ["ports"], ""),
	}
}

deny contains finding if {
	some path, block in cidrs.blocks
	some field, text in cidrs.written(block)
	not cidrs.valid(text)
	finding := {
		"message": "is not a range such as 192.0.2.0/24, written as its first address",
		"field": sprintf("%s.%s", [path, field]),
		"value": text,
	}
}

deny contains finding if {
	some path, block in cidrs.blocks
	wide(block.cidr)
	some required in input.parameters.requiredExcepts
	cidrs.meet(block.cidr, required)
	not cidrs.spared(required, block)
	finding := {
		"message": sprintf("the range covers %s", [required]),
		"field": sprintf("%s.except", [path]),
		"value": cidrs.without(block, required),
		"content": cidrs.ports[path],
	}
}

# Ranges of two rules add up, so the whole of what is allowed is looked at.
deny contains finding if {
	whole := net.cidr_merge([block.cidr | some block in cidrs.blocks; cidrs.valid(block.cidr)])
	some range in whole
	wide(range)
	not range in {block.cidr | some block in cidrs.blocks}
	finding := {
		"message": sprintf("the ranges together cover %s", [range]),
		"field": "spec.networkPolicy.egress",
		"value": range,
		"content": opened,
	}
}

# A wide range that spares others is of no use when the rest covers them.
deny contains finding if {
	some required in covered
	some range in {block.cidr | some block in cidrs.blocks; wide(block.cidr)}
	cidrs.meet(range, required)
	finding := {
		"message": sprintf("beside %s, the other ranges cover %s", [range, required]),
		"field": "spec.networkPolicy.egress",
		"value": required,
		"content": opened,
	}
}

covered := {required |
	some part in net.cidr_merge([block.cidr | some block in cidrs.blocks; cidrs.valid(block.cidr); not wide(block.cidr)])
	some required in input.parameters.requiredExcepts
	cidrs.family(required) == cidrs.family(part)
	net.cidr_contains(part, required)
}

opened := {[block.cidr, port] |
	some path, block in cidrs.blocks
	some port in cidrs.ports[path]
}

wide(range) if {
	cidrs.valid(range)
	to_number(split(range, "/")[1]) < shortest[cidrs.family(range)]
}

shortest := {"IPv4": given.minPrefix, "IPv6": given.minPrefixIPv6}

default given := {"minPrefix": 8, "minPrefixIPv6": 16}

given := input.parameters
