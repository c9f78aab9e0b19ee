package policies.library.namespace_allowed_test

import data.policies.library.namespace_allowed

request(name, labels, opt_in) := {"namespace": {"name": name, "labels": labels}, "parameters": {"denied": ["kube-*", "default"], "optInLabel": opt_in}}

test_denies_a_name[name] if {
	some name in ["kube-system", "kube-", "default"]
	namespace_allowed.deny == {{
		"message": "the namespace is not one for Sandboxes",
		"field": "metadata.namespace",
		"value": name,
	}} with input as request(name, {"sandboxes": "on"}, "sandboxes")
}

test_denies_without_the_label[note] if {
	some note, case in {"none": [{}, "sandboxes"], "another": [{"sandbox": ""}, "sandboxes"], "another value": [{"sandboxes": "off"}, "sandboxes=on"]}
	namespace_allowed.deny == {{
		"message": sprintf("the namespace lacks the label %s", [case[1]]),
		"field": "metadata.namespace",
		"value": "team",
	}} with input as request("team", case[0], case[1])
}

test_denies_a_namespace_that_nobody_told_of if {
	found := namespace_allowed.deny with input as {"parameters": {"denied": ["default"], "optInLabel": "sandboxes"}}
	{finding.value | some finding in found} == {""}
}

test_allows[note] if {
	some note, case in {"no label needed": ["team", {}, ""], "labelled": ["team", {"sandboxes": ""}, "sandboxes"], "with the value": ["team", {"sandboxes": "on"}, "sandboxes=on"], "a longer name": ["defaults", {}, ""], "in the middle": ["my-kube-system", {}, ""]}
	count(namespace_allowed.deny) == 0 with input as request(case[0], case[1], case[2])
}

test_allows_all_without_parameters if {
	count(namespace_allowed.deny) == 0 with input as {"namespace": {"name": "default"}}
}
