package policies.library.host_users_test

import data.lib.fixtures
import data.policies.library.host_users

request(fields, required) := object.union(
	fixtures.configured(fixtures.pod_with(fields), {"classes": ["kata"], "required": required}),
	{"tier": {"runtimeClass": {"classes": ["plain", {"name": "gvisor", "hostUsers": false}, {"name": "old"}, {"name": "shared", "hostUsers": true}]}}},
)

test_denies_a_runtime_without[class] if {
	some class in ["old", "plain", "shared", "unknown"]
	host_users.deny == {{
		"message": sprintf("the runtime of RuntimeClass %q is not known to have user namespaces", [class]),
		"field": "spec.podTemplate.spec.hostUsers",
		"value": false,
	}} with input as request({"hostUsers": false, "runtimeClassName": class}, false)
}

test_denies_a_runtime_without_parameters if {
	count(host_users.deny) == 1 with input as object.remove(request({"hostUsers": false, "runtimeClassName": "kata"}, false), ["parameters", "tier"])
}

test_denies_the_users_of_the_node[note] if {
	some note, case in {"absent": [{}, ""], "null": [{"hostUsers": null}, ""], "true": [{"hostUsers": true}, true], "text": [{"hostUsers": "false"}, "false"], "listed": [{"runtimeClassName": "kata"}, ""], "of the tier": [{"runtimeClassName": "gvisor"}, ""], "no class": [{"runtimeClassName": null}, ""]}
	host_users.deny == {{
		"message": "root in a container would be root of the node",
		"field": "spec.podTemplate.spec.hostUsers",
		"value": case[1],
	}} with input as request(case[0], true)
}

test_allows[note] if {
	some note, case in {
		"not required": [{}, false],
		"not required and true": [{"hostUsers": true, "runtimeClassName": "kata"}, false],
		"listed": [{"hostUsers": false, "runtimeClassName": "kata"}, true],
		"of the tier": [{"hostUsers": false, "runtimeClassName": "gvisor"}, true],
		"no class": [{"hostUsers": false}, true],
		"no class written": [{"hostUsers": false, "runtimeClassName": ""}, true],
		"a runtime without": [{"runtimeClassName": "old"}, true],
	}
	count(host_users.deny) == 0 with input as request(case[0], case[1])
}

test_judges_no_pod_that_does_not_exist_yet if {
	count(host_users.deny) == 0 with input as {"kind": "SandboxClaim", "object": {}, "parameters": {"required": true}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(host_users.deny) == {"template.spec.podTemplate.spec.hostUsers"} with input as fixtures.as_kind(request({}, true), kind, path)
}
