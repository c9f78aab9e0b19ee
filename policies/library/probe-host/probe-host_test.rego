package policies.library.probe_host_test

import data.lib.fixtures
import data.policies.library.probe_host

changed(list, fields) := fixtures.sandbox(fixtures.with_container(list, fields))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(probe_host.deny) == {{
		"message": `container "main" has the kubelet call another host`,
		"field": sprintf("spec.podTemplate.spec.%s[0].livenessProbe.httpGet.host", [list]),
		"value": "169.254.169.254",
	}} with input as changed(list, {"livenessProbe": {"httpGet": {"host": "169.254.169.254"}}})
}

test_denies_every_probe[name] if {
	some name in ["livenessProbe", "readinessProbe", "startupProbe"]
	some handler in ["httpGet", "tcpSocket"]
	fixtures.fields(probe_host.deny) == {sprintf("spec.podTemplate.spec.containers[0].%s.%s.host", [name, handler])} with input as changed("containers", {name: {handler: {"host": "a"}}})
}

test_denies_every_handler[handler] if {
	some handler in ["httpGet", "tcpSocket"]
	every name in ["livenessProbe", "readinessProbe", "startupProbe"] {
		count(probe_host.deny) == 1 with input as changed("containers", {name: {handler: {"host": "a"}}})
	}
	every name in ["postStart", "preStop"] {
		fixtures.fields(probe_host.deny) == {sprintf("spec.podTemplate.spec.containers[0].lifecycle.%s.%s.host", [name, handler])} with input as changed("containers", {"lifecycle": {name: {handler: {"host": 7}}}})
	}
}

test_allows[note] if {
	some note, host in {"null": null, "empty": ""}
	count(probe_host.deny) == 0 with input as changed("containers", {
		"livenessProbe": {"httpGet": {"host": host, "port": 80}},
		"lifecycle": {"preStop": {"tcpSocket": {"host": host}}},
	})
}

test_allows_without_a_host[note] if {
	some note, probe in {"null": null, "empty": {}, "no host": {"httpGet": {"port": 80}}, "exec": {"exec": {"command": ["true"]}}, "text": "x"}
	count(probe_host.deny) == 0 with input as changed("containers", {"readinessProbe": probe, "lifecycle": {"preStop": probe}})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"readinessProbe": {"tcpSocket": {"host": "a"}}}), {}), kind, path)
	fixtures.fields(probe_host.deny) == {"template.spec.podTemplate.spec.containers[0].readinessProbe.tcpSocket.host"} with input as request
}
