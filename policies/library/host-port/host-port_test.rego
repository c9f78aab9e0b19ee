package policies.library.host_port_test

import data.lib.fixtures
import data.policies.library.host_port

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(host_port.deny) == {{
		"message": `container "main" opens a port of the node`,
		"field": sprintf("spec.podTemplate.spec.%s[0].ports[1].hostPort", [list]),
		"value": 8080,
	}} with input as fixtures.sandbox(fixtures.with_container(list, {"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8080}]}))
}

test_denies_what_is_not_zero[note] if {
	some note, port in {"string": "8080", "negative": -1, "zero as a string": "0"}
	count(host_port.deny) == 1 with input as fixtures.sandbox(fixtures.with_container("containers", {"ports": [{"hostPort": port}]}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(fixtures.with_container("containers", {"ports": [{"hostPort": 1}]})), kind, path)
	fixtures.fields(host_port.deny) == {"template.spec.podTemplate.spec.containers[0].ports[0].hostPort"} with input as request
}

test_allows[note] if {
	some note, ports in {
		"zero": [{"containerPort": 80, "hostPort": 0}],
		"null port": [{"containerPort": 80, "hostPort": null}],
		"absent": [{"containerPort": 80}],
		"null member": [null],
		"empty": [],
		"null": null,
	}
	count(host_port.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"ports": ports}))
}

test_what_a_port_opens[note] if {
	some note, case in {
		"every address": [{}, {"TCP", ""}],
		"one address": [{"hostIP": "192.0.2.1"}, {"TCP", "192.0.2.1"}],
		"the loopback": [{"hostIP": "127.0.0.1", "protocol": "UDP"}, {"UDP"}],
		"the loopback of IPv6": [{"hostIP": "::1"}, {"TCP"}],
	}
	{finding.content | some finding in host_port.deny} == {case[1]} with input as fixtures.sandbox(fixtures.with_container("containers", {"ports": [object.union({"hostPort": 80}, case[0])]}))
}
