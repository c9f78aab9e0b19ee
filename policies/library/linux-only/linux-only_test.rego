package policies.library.linux_only_test

import data.lib.fixtures
import data.policies.library.linux_only

test_denies_another_system[value] if {
	some value in ["windows", "", "Linux"]
	linux_only.deny == {{
		"message": "the operating system is another than Linux",
		"field": "spec.podTemplate.spec.os.name",
		"value": value,
	}} with input as fixtures.sandbox(fixtures.pod_with({"os": {"name": value}}))
}

test_denies_nodes_of_another_system[key] if {
	some key in ["beta.kubernetes.io/os", "kubernetes.io/os"]
	linux_only.deny == {{
		"message": "the Sandbox asks for nodes of another operating system than Linux",
		"field": sprintf("spec.podTemplate.spec.nodeSelector[%s]", [key]),
		"value": "windows",
	}} with input as fixtures.sandbox(fixtures.pod_with({"nodeSelector": {key: "windows"}}))
}

test_denies_options_in_every_list[list] if {
	some list in fixtures.lists
	linux_only.deny == {{
		"message": "options of Windows are set",
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.windowsOptions", [list]),
		"value": {"runAsUserName": "a"},
	}} with input as fixtures.sandbox({list: [{"securityContext": {"windowsOptions": {"runAsUserName": "a"}}}]})
}

test_denies_options_of_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "a"}}})
	fixtures.fields(linux_only.deny) == {"spec.podTemplate.spec.securityContext.windowsOptions"} with input as fixtures.sandbox(spec)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox({"os": {"name": "windows"}}), kind, path)
	fixtures.fields(linux_only.deny) == {"template.spec.podTemplate.spec.os.name"} with input as request
}

test_allows[note] if {
	some note, fields in {
		"linux": {"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"}},
		"null": {"os": null, "nodeSelector": null, "securityContext": {"windowsOptions": null}},
		"no name": {"os": {"name": null}},
		"empty": {"os": {}, "nodeSelector": {"pool": "windows"}, "securityContext": {"windowsOptions": {}}},
	}
	count(linux_only.deny) == 0 with input as fixtures.sandbox(fixtures.pod_with(fields))
}

test_allows_the_plain_sandbox if {
	count(linux_only.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_judges_terms_of_nodes[note] if {
	some note, case in {
		"windows": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}, 1],
		"either": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux", "windows"]}, 1],
		"the older key": [{"key": "beta.kubernetes.io/os", "operator": "In", "values": ["windows"]}, 1],
		"not linux": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}, 1],
		"nothing": [{"key": "kubernetes.io/os", "operator": "DoesNotExist"}, 1],
		"no values": [{"key": "kubernetes.io/os", "operator": "In"}, 1],
		"linux": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}, 0],
		"anything": [{"key": "kubernetes.io/os", "operator": "Exists"}, 0],
		"not windows": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]}, 0],
		"another label": [{"key": "pool", "operator": "In", "values": ["windows"]}, 0],
	}
	some terms in [
		{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [case[0]]}]}},
		{"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [case[0]]}}]},
	]
	count(linux_only.deny) == case[1] with input as fixtures.sandbox(fixtures.pod_with({"affinity": {"nodeAffinity": terms}}))
}

test_names_the_term if {
	requirement := {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}
	linux_only.deny == {{
		"message": "the Sandbox asks for nodes of another operating system than Linux",
		"field": "spec.podTemplate.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]",
		"value": requirement,
	}} with input as fixtures.sandbox({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}})
}
