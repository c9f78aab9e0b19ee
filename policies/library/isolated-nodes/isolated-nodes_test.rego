package policies.library.isolated_nodes_test

import data.lib.fixtures
import data.policies.library.isolated_nodes

parameters := {"nodeSelector": {"pool": "sandboxes"}, "tolerations": ["sandboxes"]}

request(fields) := fixtures.configured(fixtures.pod_with(fields), parameters)

selector := {"pool": "sandboxes"}

tolerations := [{"key": "other"}, {"key": "sandboxes", "operator": "Exists"}]

test_denies_other_nodes[note] if {
	some note, case in {"absent": [{}, ""], "null": [{"nodeSelector": null}, ""], "other key": [{"nodeSelector": {"a": "sandboxes"}}, ""], "other value": [{"nodeSelector": {"pool": "b"}}, "b"]}
	isolated_nodes.deny == {{
		"message": "the Sandbox does not ask for nodes with pool=sandboxes",
		"field": "spec.podTemplate.spec.nodeSelector[pool]",
		"value": case[1],
	}} with input as request(object.union({"tolerations": tolerations}, case[0]))
}

test_denies_without_the_toleration[note] if {
	some note, fields in {"absent": {}, "null": {"tolerations": null}, "empty": {"tolerations": []}, "another": {"tolerations": [{"key": "a"}]}, "of everything": {"tolerations": [{"operator": "Exists"}]}, "no object": {"tolerations": ["sandboxes"]}}
	isolated_nodes.deny == {{
		"message": "the Sandbox does not tolerate the taint sandboxes",
		"field": "spec.podTemplate.spec.tolerations",
		"value": "sandboxes",
	}} with input as request(object.union({"nodeSelector": selector}, fields))
}

test_allows_both if {
	count(isolated_nodes.deny) == 0 with input as request({"nodeSelector": object.union(selector, {"a": "b"}), "tolerations": tolerations})
}

test_wants_nothing_without_parameters if {
	count(isolated_nodes.deny) == 0 with input as object.remove(request({}), ["parameters"])
}

test_judges_no_pod_that_does_not_exist_yet if {
	count(isolated_nodes.deny) == 0 with input as {"kind": "SandboxClaim", "object": {}, "parameters": parameters}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(isolated_nodes.deny) == {"template.spec.podTemplate.spec.nodeSelector[pool]", "template.spec.podTemplate.spec.tolerations"} with input as fixtures.as_kind(request({}), kind, path)
}
