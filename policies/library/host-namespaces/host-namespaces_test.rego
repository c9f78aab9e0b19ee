package policies.library.host_namespaces_test

import data.lib.fixtures
import data.policies.library.host_namespaces

names := ["hostNetwork", "hostPID", "hostIPC"]

test_denies_each[name] if {
	some name in names
	fixtures.fields(host_namespaces.deny) == {sprintf("spec.podTemplate.spec.%s", [name])} with input as fixtures.sandbox(fixtures.pod_with({name: true}))
}

test_says_which[name] if {
	some name, namespace in {"hostNetwork": "network", "hostPID": "process", "hostIPC": "IPC"}
	host_namespaces.deny == {{
		"message": sprintf("the Sandbox joins the %s namespace of the node", [namespace]),
		"field": sprintf("spec.podTemplate.spec.%s", [name]),
		"value": true,
	}} with input as fixtures.sandbox({name: true})
}

test_denies_all_together if {
	count(host_namespaces.deny) == 3 with input as fixtures.sandbox({name: true | some name in names})
}

test_denies_anything_but_false[note] if {
	some note, value in {"string": "true", "number": 0}
	count(host_namespaces.deny) == 1 with input as fixtures.sandbox({"hostPID": value})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox({"hostIPC": true}), kind, path)
	fixtures.fields(host_namespaces.deny) == {"template.spec.podTemplate.spec.hostIPC"} with input as request
}

test_allows[note] if {
	some note, value in {"false": false, "null": null}
	count(host_namespaces.deny) == 0 with input as fixtures.sandbox({name: value | some name in names})
}

test_allows_the_plain_sandbox if {
	count(host_namespaces.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}
