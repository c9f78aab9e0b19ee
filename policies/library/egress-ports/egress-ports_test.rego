package policies.library.egress_ports_test

import data.lib.fixtures
import data.lib.values
import data.policies.library.egress_ports

outside := [{"podSelector": {}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]

policy(rule) := {
	"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"podSelector": {}}]}, rule]}}},
	"parameters": {"allowedPorts": [53, 443]},
}

test_denies_every_port[note] if {
	some note, rule in {"absent": {"to": outside}, "null": {"to": outside, "ports": null}, "empty": {"to": outside, "ports": []}, "to everybody": {}, "to nobody named": {"to": null}, "to no list": {"to": []}}
	egress_ports.deny == {{
		"message": "a rule without ports allows every port",
		"field": "spec.networkPolicy.egress[1].ports",
		"value": values.given_or(rule, ["to"], ""),
	}} with input as policy(rule)
}

test_denies_a_port[note] if {
	some note, port in {"mail": {"port": 25}, "a name": {"port": "https"}, "text": {"port": "443"}, "none": {"protocol": "UDP"}, "null": {"port": null}, "no object": 443}
	fixtures.said(egress_ports.deny) == {{
		"message": "the port is not one of those that are allowed",
		"field": "spec.networkPolicy.egress[1].ports[1]",
		"value": port,
	}} with input as policy({"to": outside, "ports": [{"port": 443}, port]})
}

test_denies_a_range if {
	fixtures.said(egress_ports.deny) == {{
		"message": "a range of ports is open",
		"field": "spec.networkPolicy.egress[1].ports[0]",
		"value": {"port": 443, "endPort": 444},
	}} with input as policy({"to": outside, "ports": [{"port": 443, "endPort": 444}]})
}

test_denies_without_parameters if {
	count(egress_ports.deny) == 1 with input as object.remove(policy({"to": outside, "ports": [{"port": 443}]}), ["parameters"])
}

test_allows[note] if {
	some note, rule in {
		"listed": {"to": outside, "ports": [{"port": 53, "protocol": "UDP"}, {"port": 443, "endPort": null}]},
		"a range of one": {"to": outside, "ports": [{"port": 443, "endPort": 443}]},
		"within the cluster": {"to": [{"namespaceSelector": {}, "ipBlock": null}], "ports": [{"port": 5432}]},
		"within the cluster, every port": {"to": [{"podSelector": {}}]},
	}
	count(egress_ports.deny) == 0 with input as policy(rule)
}

test_allows_a_template_without_rules[note] if {
	some note, spec in {"absent": {}, "null": {"networkPolicy": null}, "empty": {"networkPolicy": {"egress": []}}}
	count(egress_ports.deny) == 0 with input as {"object": {"spec": spec}, "parameters": {"allowedPorts": [443]}}
}

test_peers_that_a_port_is_opened_to[note] if {
	some note, case in {"few": [20, 20], "many": [21, 1]}
	rule := {"to": [{"ipBlock": {"cidr": sprintf("192.0.2.%d/32", [i])}} | some i in array.slice(twenty_one, 0, case[0])], "ports": [{"port": 25}]}
	{count(finding.content) | some finding in egress_ports.deny} == {case[1]} with input as {"object": {"spec": {"networkPolicy": {"egress": [rule]}}}}
}

twenty_one := [i | some i in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}]
