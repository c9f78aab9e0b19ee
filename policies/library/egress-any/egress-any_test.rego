package policies.library.egress_any_test

import data.lib.fixtures
import data.lib.values
import data.policies.library.egress_any

policy(rules) := {
	"object": {"spec": {"networkPolicy": {"egress": rules}}},
	"parameters": {"minPrefix": 8, "minPrefixIPv6": 16, "requiredExcepts": ["10.0.0.0/8", "fc00::/7"]},
}

block(cidr, excepts) := {"to": [{"ipBlock": {"cidr": cidr, "except": excepts}}]}

test_denies_no_peer[note] if {
	some note, rule in {"absent": {}, "null": {"to": null}, "empty": {"to": []}, "ports only": {"ports": [{"port": 443}]}, "no list": {"to": true}, "no object": true}
	egress_any.deny == {{"message": "a rule without peers allows every address", "field": "spec.networkPolicy.egress[1].to", "value": values.given_or(rule, ["ports"], "")}} with input as policy([block("192.0.2.0/24", []), rule])
}

test_denies_an_empty_peer[note] if {
	some note, peer in {"empty": {}, "null": null}
	some ports in ["", [{"port": 443}]]
	egress_any.deny == {{"message": "an empty peer allows every address", "field": "spec.networkPolicy.egress[0].to[0]", "value": ports}} with input as policy([{"to": [peer], "ports": ports}])
}

test_denies_everything[note] if {
	some note, case in {"IPv4": ["0.0.0.0/0", [], "10.0.0.0/8"], "IPv6": ["::/0", [], "fc00::/7"], "half": ["0.0.0.0/1", ["10.0.0.0/9"], "10.0.0.0/8"], "null": ["0.0.0.0/0", null, "10.0.0.0/8"]}
	fixtures.said(egress_any.deny) == {{
		"message": sprintf("the range covers %s", [case[2]]),
		"field": "spec.networkPolicy.egress[0].to[0].ipBlock.except",
		"value": sprintf("%s without %s", [case[0], case[2]]),
	}} with input as policy([block(case[0], case[1])])
}

test_denies_halves_together if {
	{"message": "the ranges together cover 10.0.0.0/7", "field": "spec.networkPolicy.egress", "value": "10.0.0.0/7"} in fixtures.said(egress_any.deny) with input as policy([block("10.0.0.0/8", []), block("11.0.0.0/8", [])])
}

test_denies_what_is_no_range[text] if {
	some text in ["010.0.0.0/8", "10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "fd00::1/8", "x", "", 7]
	egress_any.deny == {{
		"message": "is not a range such as 192.0.2.0/24, written as its first address",
		"field": "spec.networkPolicy.egress[0].to[0].ipBlock.cidr",
		"value": text,
	}} with input as policy([block(text, [])])
}

test_denies_an_except_that_is_no_range if {
	fixtures.fields(egress_any.deny) == {"spec.networkPolicy.egress[0].to[0].ipBlock.except[1]"} with input as policy([block("192.0.2.0/24", ["192.0.2.0/25", "192.0.2.129/25"])])
}

test_allows[note] if {
	some note, rules in {
		"the least prefix": [block("12.0.0.0/8", [])],
		"the least prefix of IPv6": [block("2001::/16", [])],
		"everything but": [block("0.0.0.0/0", ["10.0.0.0/8"])],
		"everything but more": [block("::/0", ["fc00::/6"])],
		"all that is assigned of IPv6": [block("2000::/3", [])],
		"a half without private ranges": [block("128.0.0.0/1", [])],
		"a half, and a private range": [block("128.0.0.0/1", []), block("10.0.0.0/8", [])],
		"pods": [{"to": [{"podSelector": {}}]}],
		"no rule": [],
		"null": null,
	}
	count(egress_any.deny) == 0 with input as policy(rules)
}

test_without_parameters_width_counts_together if {
	count(egress_any.deny) == 1 with input as {"object": {"spec": {"networkPolicy": {"egress": [block("10.0.0.0/8", []), block("11.0.0.0/8", [])]}}}}
	count(egress_any.deny) == 0 with input as {"object": {"spec": {"networkPolicy": {"egress": [block("10.0.0.0/8", [])]}}}}
}

test_without_parameters_the_defaults_hold[note] if {
	some note, case in {
		"the least prefix": ["12.0.0.0/9", "12.128.0.0/9", 0],
		"a shorter one": ["12.0.0.0/8", "13.0.0.0/8", 1],
		"the least prefix of IPv6": ["2001::/17", "2001:8000::/17", 0],
		"a shorter one of IPv6": ["2000::/16", "2001::/16", 1],
	}
	halves := policy([block(case[0], []), block(case[1], [])])
	count(egress_any.deny) == case[2] with input as object.remove(halves, ["parameters"])
}

test_the_least_prefix_is_a_parameter[note] if {
	some note, case in {"IPv4": ["12.0.0.0/9", "12.128.0.0/9"], "IPv6": ["2001::/17", "2001:8000::/17"]}
	halves := policy([block(case[0], []), block(case[1], [])])
	"spec.networkPolicy.egress" in fixtures.fields(egress_any.deny) with input as object.union(halves, {"parameters": {"minPrefix": 12, "minPrefixIPv6": 24}})
}

test_denies_a_block_without_a_range if {
	egress_any.deny == {{
		"message": "is not a range such as 192.0.2.0/24, written as its first address",
		"field": "spec.networkPolicy.egress[0].to[0].ipBlock.cidr",
		"value": "",
	}} with input as policy([{"to": [{"ipBlock": {"except": []}}]}])
}

spared := ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]

test_denies_the_rest_beside_a_range_that_spares_it[note] if {
	some note, case in {
		"one by one": [[block(range, []) | some range in spared], {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}],
		"by halves": [[block("10.0.0.0/9", []), block("10.128.0.0/9", [])], {"10.0.0.0/8"}],
		"a part only": [[block("10.0.0.0/9", [])], set()],
		"another family": [[block("fd00::/8", [])], set()],
	}
	given := array.concat([block("0.0.0.0/0", spared)], case[0])
	{finding.value | some finding in egress_any.deny; startswith(finding.message, "beside 0.0.0.0/0,")} == case[1] with input as object.union(policy(given), {"parameters": {"minPrefix": 8, "minPrefixIPv6": 16, "requiredExcepts": spared}})
}

test_what_is_wide_is_no_rest if {
	{finding.field | some finding in egress_any.deny; contains(finding.message, "the other ranges")} == set() with input as object.union(policy([block("0.0.0.0/0", spared), block("8.0.0.0/6", [])]), {"parameters": {"minPrefix": 8, "minPrefixIPv6": 16, "requiredExcepts": spared}})
}

test_what_all_ranges_open if {
	given := [block("0.0.0.0/0", spared), block("10.0.0.0/8", [])]
	{[finding.field, finding.content] | some finding in egress_any.deny; finding.value == "10.0.0.0/8"} == {["spec.networkPolicy.egress", {["0.0.0.0/0", "every port"], ["10.0.0.0/8", "every port"]}]} with input as object.union(policy(given), {"parameters": {"minPrefix": 8, "minPrefixIPv6": 16, "requiredExcepts": spared}})
}
