package policies.library.egress_cluster_test

import data.lib.fixtures
import data.policies.library.egress_cluster

policy(cidr, excepts) := {
	"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"podSelector": {}}, {"ipBlock": {"cidr": cidr, "except": excepts}}]}]}}},
	"parameters": {"clusterCIDRs": ["34.118.224.0/20", "fd12::/48"]},
}

test_denies[note] if {
	some note, case in {
		"everything": ["0.0.0.0/0", [], "34.118.224.0/20"],
		"without excepts": ["0.0.0.0/0", null, "34.118.224.0/20"],
		"a part": ["34.118.225.0/24", [], "34.118.224.0/20"],
		"half left out": ["34.0.0.0/8", ["34.118.224.0/21"], "34.118.224.0/20"],
		"IPv6": ["::/0", ["fd12::/64"], "fd12::/48"],
		"IPv4 written as IPv6": ["::ffff:34.118.225.0/120", [], "34.118.224.0/20"],
		"an except that is no range": ["0.0.0.0/0", ["34.118.224.1/20"], "34.118.224.0/20"],
	}
	fixtures.said(egress_cluster.deny) == {{
		"message": sprintf("the range covers addresses of the cluster in %s", [case[2]]),
		"field": "spec.networkPolicy.egress[0].to[1].ipBlock.except",
		"value": sprintf("%s without %s", [case[0], case[2]]),
	}} with input as policy(case[0], case[1])
}

test_allows[note] if {
	some note, case in {
		"elsewhere": ["192.0.2.0/24", []],
		"left out": ["0.0.0.0/0", ["192.0.2.0/24", "34.118.224.0/20"]],
		"more left out": ["::/0", ["fd00::/8"]],
	}
	count(egress_cluster.deny) == 0 with input as policy(case[0], case[1])
}

test_allows_a_template_without_rules[note] if {
	some note, spec in {"absent": {}, "null": {"networkPolicy": null}, "empty": {"networkPolicy": {"egress": []}}}
	count(egress_cluster.deny) == 0 with input as {"object": {"spec": spec}, "parameters": {"clusterCIDRs": ["10.0.0.0/8"]}}
}

test_knows_nothing_without_parameters if {
	count(egress_cluster.deny) == 0 with input as object.remove(policy("0.0.0.0/0", []), ["parameters"])
}

test_denies_what_cannot_be_read[text] if {
	some text in ["169.254.169.0254/32", "x", "", 7]
	egress_cluster.deny == {{
		"message": "the range cannot be read and may cover addresses of the cluster: write its first address without leading zeros",
		"field": "spec.networkPolicy.egress[0].to[1].ipBlock.cidr",
		"value": text,
	}} with input as policy(text, [])
}

test_denies_a_block_without_a_range if {
	fixtures.fields(egress_cluster.deny) == {"spec.networkPolicy.egress[0].to[0].ipBlock.cidr"} with input as {"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"ipBlock": {}}]}]}}}}
}
