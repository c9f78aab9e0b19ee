package policies.library.sysctls_test

import data.lib.fixtures
import data.policies.library.sysctls

request(value) := fixtures.configured(fixtures.pod_with({"securityContext": {"sysctls": value}}), {"allowed": ["net.ipv4.tcp_syncookies"]})

test_denies if {
	sysctls.deny == {{
		"message": "the sysctl is not on the list of those that are confined to a Pod",
		"field": "spec.podTemplate.spec.securityContext.sysctls[1].name",
		"value": {"name": "kernel.msgmax", "value": "1"},
	}} with input as request([{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "kernel.msgmax", "value": "1"}])
}

test_denies_what_has_no_name[note] if {
	some note, value in {"null": null, "empty": {}, "text": "net.ipv4.tcp_syncookies", "null name": {"name": null}}
	count(sysctls.deny) == 1 with input as request([value])
}

test_denies_without_parameters if {
	count(sysctls.deny) == 1 with input as object.remove(request([{"name": "net.ipv4.tcp_syncookies"}]), ["parameters"])
}

test_allows[note] if {
	some note, value in {"null": null, "empty": [], "listed": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}
	count(sysctls.deny) == 0 with input as request(value)
}

test_allows_the_plain_sandbox if {
	count(sysctls.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.pod_with({"securityContext": {"sysctls": [{"name": "x"}]}}), {}), kind, path)
	fixtures.fields(sysctls.deny) == {"template.spec.podTemplate.spec.securityContext.sysctls[0].name"} with input as request
}
