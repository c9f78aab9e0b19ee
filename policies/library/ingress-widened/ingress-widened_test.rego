package policies.library.ingress_widened_test

import data.lib.fixtures
import data.policies.library.ingress_widened

router := {"podSelector": {"matchLabels": {"app": "sandbox-router"}}, "namespaceSelector": {"matchLabels": {"a": "b"}}}

policy(rule) := {
	"object": {"spec": {"networkPolicy": {"ingress": [{"from": [router]}, rule]}}},
	"parameters": {"allowedPeers": [router]},
}

test_denies_everybody[note] if {
	some note, rule in {"absent": {}, "null": {"from": null}, "empty": {"from": []}, "ports only": {"ports": [{"port": 8080}]}}
	ingress_widened.deny == {{
		"message": "a rule without peers lets everybody in",
		"field": "spec.networkPolicy.ingress[1].from",
		"value": object.get(rule, "ports", ""),
	}} with input as policy(rule)
}

test_denies_another_peer[note] if {
	some note, peer in {
		"empty": {},
		"the namespace": {"podSelector": {}},
		"the label elsewhere": {"podSelector": router.podSelector, "namespaceSelector": {}},
		"the label here": {"podSelector": router.podSelector},
		"addresses": {"ipBlock": {"cidr": "192.0.2.0/24"}},
	}
	fixtures.said(ingress_widened.deny) == {{
		"message": "the peer is another than the router",
		"field": "spec.networkPolicy.ingress[1].from[1]",
		"value": peer,
	}} with input as policy({"from": [router, peer]})
}

test_denies_without_parameters if {
	count(ingress_widened.deny) == 2 with input as object.remove(policy({"from": [router]}), ["parameters"])
}

test_allows_the_router if {
	count(ingress_widened.deny) == 0 with input as policy({"from": [router], "ports": [{"port": 8888}]})
}

test_allows_a_template_without_rules[note] if {
	some note, spec in {"absent": {}, "null": {"networkPolicy": null}, "empty": {"networkPolicy": {"ingress": []}}}
	count(ingress_widened.deny) == 0 with input as {"object": {"spec": spec}, "parameters": {"allowedPeers": []}}
}
