package policies.library.egress_metadata_test

import data.lib.fixtures
import data.policies.library.egress_metadata

policy(cidr, excepts) := {
	"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": cidr, "except": excepts}}]}]}}},
	"parameters": {"metadataCIDRs": ["169.254.169.254/32", "fd00:ec2::254/128"]},
}

test_denies[note] if {
	some note, case in {
		"everything": ["0.0.0.0/0", [], "169.254.169.254/32"],
		"the address": ["169.254.169.254/32", null, "169.254.169.254/32"],
		"IPv6": ["fd00::/8", ["fd01::/16"], "fd00:ec2::254/128"],
		"IPv4 written as IPv6": ["::ffff:169.254.0.0/112", [], "169.254.169.254/32"],
		"not its first address": ["169.254.169.255/31", [], "169.254.169.254/32"],
		"an except written as IPv6": ["0.0.0.0/0", ["::ffff:169.254.0.0/112"], "169.254.169.254/32"],
		"another except": ["0.0.0.0/0", ["169.254.0.0/17", "x"], "169.254.169.254/32"],
	}
	fixtures.said(egress_metadata.deny) == {{
		"message": sprintf("the range covers the metadata service at %s", [case[2]]),
		"field": "spec.networkPolicy.egress[0].to[0].ipBlock.except",
		"value": sprintf("%s without %s", [case[0], case[2]]),
	}} with input as policy(case[0], case[1])
}

test_allows[note] if {
	some note, case in {"left out": ["0.0.0.0/0", ["169.254.0.0/16"]], "elsewhere": ["192.0.2.0/24", []]}
	count(egress_metadata.deny) == 0 with input as policy(case[0], case[1])
}

test_allows_no_policy if {
	count(egress_metadata.deny) == 0 with input as {"object": {"spec": {}}, "parameters": {"metadataCIDRs": ["169.254.169.254/32"]}}
}

test_denies_what_cannot_be_read[text] if {
	some text in ["169.254.169.0254/32", "x", "", 7]
	egress_metadata.deny == {{
		"message": "the range cannot be read and may cover a metadata service: write its first address without leading zeros",
		"field": "spec.networkPolicy.egress[0].to[0].ipBlock.cidr",
		"value": text,
	}} with input as policy(text, [])
}

test_denies_a_block_without_a_range if {
	fixtures.fields(egress_metadata.deny) == {"spec.networkPolicy.egress[0].to[0].ipBlock.cidr"} with input as {"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"ipBlock": {}}]}]}}}}
}
