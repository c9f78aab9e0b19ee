package policies.library.node_and_affinity_test

import data.lib.fixtures
import data.policies.library.node_and_affinity

required := "requiredDuringSchedulingIgnoredDuringExecution"

preferred := "preferredDuringSchedulingIgnoredDuringExecution"

request(fields) := object.union(
	fixtures.configured(fixtures.pod_with(fields), {"allowedKeys": ["zone"]}),
	{"namespace": {"name": "team"}},
)

by_node(affinity) := request({"affinity": {"nodeAffinity": affinity}})

by_pod(kind, affinity) := request({"affinity": {kind: affinity}})

test_denies_a_selector if {
	fixtures.said(node_and_affinity.deny) == {{
		"message": `nodes are chosen by "kubernetes.io/hostname", which is not a label that is allowed`,
		"field": "spec.podTemplate.spec.nodeSelector[kubernetes.io/hostname]",
		"value": "kubernetes.io/hostname",
	}} with input as request({"nodeSelector": {"zone": "a", "kubernetes.io/hostname": "b"}})
}

test_denies_affinity[note] if {
	some note, list in {"labels": "matchExpressions", "fields": "matchFields"}
	term := {list: [{"key": "zone", "operator": "Exists"}, {"key": "metadata.name", "operator": "In", "values": ["a"]}]}
	fixtures.fields(node_and_affinity.deny) == {sprintf("spec.podTemplate.spec.affinity.nodeAffinity.%s.nodeSelectorTerms[1].%s[1].key", [required, list])} with input as by_node({required: {"nodeSelectorTerms": [{}, term]}})
	fixtures.fields(node_and_affinity.deny) == {sprintf("spec.podTemplate.spec.affinity.nodeAffinity.%s[0].preference.%s[1].key", [preferred, list])} with input as by_node({preferred: [{"weight": 1, "preference": term}]})
}

test_denies_a_requirement_without_a_key if {
	some finding in node_and_affinity.deny with input as by_node({required: {"nodeSelectorTerms": [{"matchExpressions": [{"operator": "Exists"}]}]}})
	finding.value == ""
}

test_denies_neighbours_of_other_namespaces[kind] if {
	some kind in ["podAffinity", "podAntiAffinity"]
	fixtures.said(node_and_affinity.deny) == {{
		"message": "the Sandbox chooses its node by Pods of other namespaces",
		"field": sprintf("spec.podTemplate.spec.affinity.%s.%s[0].namespaces[1]", [kind, required]),
		"value": "other",
	}} with input as by_pod(kind, {required: [{"namespaces": ["team", "other"]}]})
	fixtures.fields(node_and_affinity.deny) == {sprintf("spec.podTemplate.spec.affinity.%s.%s[0].podAffinityTerm.namespaces[0]", [kind, preferred])} with input as by_pod(kind, {preferred: [{"podAffinityTerm": {"namespaces": ["other"]}}]})
}

test_denies_neighbours_by_a_selector[note] if {
	some note, selector in {"everywhere": {}, "somewhere": {"matchLabels": {"a": "b"}}}
	fixtures.said(node_and_affinity.deny) == {{
		"message": "the Sandbox chooses its node by Pods of other namespaces",
		"field": sprintf("spec.podTemplate.spec.affinity.podAffinity.%s[0].namespaceSelector", [required]),
		"value": "",
	}} with input as by_pod("podAffinity", {required: [{"namespaceSelector": selector}]})
}

test_denies_every_namespace_where_none_is_known if {
	count(node_and_affinity.deny) == 1 with input as object.remove(by_pod("podAffinity", {required: [{"namespaces": ["team"]}]}), ["namespace"])
}

test_denies_without_parameters if {
	count(node_and_affinity.deny) == 1 with input as object.remove(request({"nodeSelector": {"zone": "a"}}), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"absent": {},
		"null": {"nodeSelector": null, "affinity": null},
		"listed": {"nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone"}], "matchFields": null}]}, preferred: null}}},
		"own namespace": {"affinity": {"podAffinity": {required: [{"namespaces": ["team"], "namespaceSelector": null}]}, "podAntiAffinity": {preferred: [{"podAffinityTerm": {"topologyKey": "zone"}}]}}},
	}
	count(node_and_affinity.deny) == 0 with input as request(fields)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(node_and_affinity.deny) == {"template.spec.podTemplate.spec.nodeSelector[a]"} with input as fixtures.as_kind(request({"nodeSelector": {"a": "b"}}), kind, path)
}

of_namespaces(names) := fixtures.sandbox({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "namespaces": names}]}}})

test_other_namespaces_are_no_part_of_what_one_is_about if {
	one := {finding.content | some finding in node_and_affinity.deny} with input as of_namespaces(["a"])
	two := {finding.content | some finding in node_and_affinity.deny} with input as of_namespaces(["a", "b"])
	count(one) == 1
	one == two
}
