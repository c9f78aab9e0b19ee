# METADATA
# title: Ranges of addresses
# description: >-
#   CIDR ranges as NetworkPolicies take them. The builtins pass over host bits and fail on leading zeros, so
#   a range is checked before they see it.
package lib.cidrs

import data.lib.pods
import data.lib.values

# METADATA
# description: The ipBlocks of the egress rules of a template, by field path.
blocks[path] := block if {
	some i, rule in pods.object_spec.networkPolicy.egress
	some j, peer in rule.to
	block := values.given(peer, ["ipBlock"])
	path := block_path(i, j)
}

# METADATA
# description: >-
#   The ports that a rule opens as a set that grows with them; no port stands for every port. Of very many there is one
#   member for all, since each peer of the rule has them.
ports_of(rule) := {"every port"} if {
	count(values.collection_at(rule, ["ports"])) == 0
} else := {port | some port in rule.ports} if {
	count(rule.ports) <= 20
} else := {crypto.sha256(json.marshal(rule.ports))}

# METADATA
# description: The ports that a template opens to an ipBlock, by the field path of the block, see ports_of.
ports := {path: list |
	some i, rule in pods.object_spec.networkPolicy.egress
	list := ports_of(rule)
	some j, _ in rule.to
	path := block_path(i, j)
}

block_path(rule, peer) := sprintf("spec.networkPolicy.egress[%v].to[%v].ipBlock", [rule, peer])

# METADATA
# description: The ranges that a block has, by field.
written(block) := object.union(
	{"cidr": values.given_or(block, ["cidr"], "")},
	{sprintf("except[%v]", [index]): text | some index, text in values.collection_at(block, ["except"])},
)

# METADATA
# description: Whether the text is a range in canonical form, with its first address.
valid(range) if {
	family(range)
	[address, length] := split(range, "/")
	net.cidr_merge([range]) == {concat("/", [lower(address), length])}
}

# METADATA
# description: IPv4 or IPv6 as it is written, undefined when it is no range.
family(range) := "IPv4" if {
	is_string(range)
	regex.match(`^(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})/(?:[0-9]|[12][0-9]|3[0-2])$`, range)
	net.cidr_is_valid(range)
}

family(range) := "IPv6" if {
	is_string(range)
	contains(range, ":")
	regex.match(`^[0-9a-fA-F:.]+/(?:0|[1-9][0-9]{0,2})$`, range)
	net.cidr_is_valid(range)
}

# METADATA
# description: Whether two ranges of the same family have an address in common.
meet(range, other) if {
	family(range) == family(other)
	net.cidr_intersects(range, other)
}

# METADATA
# description: >-
#   The cidr of each block in which it cannot be read, by its field path: older apiservers take some that read as another
#   range than they look like, so that such a one may cover anything.
unreadable[path] := text if {
	some of_block, block in blocks
	text := values.given_or(block, ["cidr"], "")
	not family(text)
	path := sprintf("%s.cidr", [of_block])
}

# METADATA
# description: Whether a range is left out of a block by one of its excepts.
spared(range, block) if {
	some except in block.except
	valid(except)
	net.cidr_contains(except, range)
}

# METADATA
# description: What a finding says of a block that does not leave a range out.
without(block, range) := sprintf("%s without %s", [block.cidr, range])
