package policies.library.egress_namespaces_test

import data.lib.fixtures
import data.policies.library.egress_namespaces

namespaces := {
	"kube-system": {"labels": {"kubernetes.io/metadata.name": "kube-system"}},
	"monitoring": {"labels": {"kubernetes.io/metadata.name": "monitoring", "team": "platform"}},
	"team": {"labels": {"kubernetes.io/metadata.name": "team", "team": "red"}},
}

policy(selector, ports) := {
	"object": {"spec": {"networkPolicy": {"egress": [{"to": [{"podSelector": {}}, {"namespaceSelector": selector}], "ports": ports}]}}},
	"parameters": {"protected": ["kube-*", "monitoring"]},
}

named(names) := {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]}

test_denies[note] if {
	some note, case in {
		"all": [{}, "every namespace"],
		"all, written": [{"matchLabels": {}, "matchExpressions": []}, "every namespace"],
		"all, null": [{"matchLabels": null, "matchExpressions": null}, "every namespace"],
		"by name": [named(["team", "kube-system"]), "kube-system"],
		"by label": [{"matchLabels": {"team": "platform"}}, "monitoring"],
		"by what is not said": [{"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}, "kube-system, monitoring"],
	}
	fixtures.said(egress_namespaces.deny) == {{
		"message": sprintf("the rule opens %s", [case[1]]),
		"field": "spec.networkPolicy.egress[0].to[1].namespaceSelector",
		"value": case[1],
	}} with input as policy(case[0], [{"port": 443}]) with data.inventory.namespaces as namespaces
}

test_denies_more_than_names[note] if {
	some note, ports in {"none": [], "null": null, "two": [{"port": 53}, {"port": 443}], "a range": [{"port": 53, "endPort": 443}], "no port": [{"protocol": "UDP"}]}
	count(egress_namespaces.deny) == 1 with input as policy(named(["kube-system"]), ports) with data.inventory.namespaces as namespaces
}

test_allows[note] if {
	some note, case in {
		"a team": [{"matchLabels": {"team": "red"}}, []],
		"a namespace that does not exist": [named(["kube-other"]), []],
		"names": [named(["kube-system"]), [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP", "endPort": 53}]],
		"names of all": [{}, [{"port": 53}]],
		"null": [null, []],
	}
	count(egress_namespaces.deny) == 0 with input as policy(case[0], case[1]) with data.inventory.namespaces as namespaces
}

test_protects_nothing_without_parameters if {
	count(egress_namespaces.deny) == 0 with input as object.remove(policy(named(["kube-system"]), []), ["parameters"]) with data.inventory.namespaces as namespaces
}

test_allows_a_template_without_rules[note] if {
	some note, spec in {"absent": {}, "null": {"networkPolicy": null}, "no peers": {"networkPolicy": {"egress": [{}]}}}
	fixtures.fields(egress_namespaces.deny) == set() with input as {"object": {"spec": spec}, "parameters": {"protected": ["*"]}} with data.inventory.namespaces as namespaces
}
