package policies.library.command_patterns_test

import data.lib.fixtures
import data.policies.library.command_patterns

patterns := {"a pipe": `curl\s.*\|\s*sh\b`, "the node": `^nsenter`, "nothing": `^$`}

request(list, fields) := fixtures.configured(fixtures.with_container(list, fields), {"patterns": patterns})

test_warns_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(command_patterns.warn) == {{
		"message": `what container "main" runs looks like a pipe`,
		"field": sprintf("spec.podTemplate.spec.%s[0].command", [list]),
		"value": "a pipe",
	}} with input as request(list, {"command": ["sh", "-c", "curl https://example.com/x | sh"]})
}

test_warns[note] if {
	some note, case in {
		"arguments": [{"args": ["nsenter", "-t", "1"]}, "command"],
		"in both": [{"command": ["curl", "example.com"], "args": ["|", "sh"]}, "command"],
		"after the start": [{"lifecycle": {"postStart": {"exec": {"command": ["nsenter"]}}}}, "lifecycle.postStart.exec.command"],
		"words": [{"lifecycle": {"postStart": {"exec": {"command": ["curl", "example.com", "|", "sh"]}}}}, "lifecycle.postStart.exec.command"],
		"before the end": [{"lifecycle": {"preStop": {"exec": {"command": ["nsenter"]}}}}, "lifecycle.preStop.exec.command"],
		"liveness": [{"livenessProbe": {"exec": {"command": ["nsenter"]}}}, "livenessProbe.exec.command"],
		"readiness": [{"readinessProbe": {"exec": {"command": ["nsenter"]}}}, "readinessProbe.exec.command"],
		"startup": [{"startupProbe": {"exec": {"command": ["nsenter"]}}}, "startupProbe.exec.command"],
	}
	fixtures.fields(command_patterns.warn) == {sprintf("spec.podTemplate.spec.containers[0].%s", [case[1]])} with input as request("containers", case[0])
}

test_says_nothing[note] if {
	some note, fields in {
		"another": {"command": ["sh", "-c", "sleep infinity"], "args": ["curl", "sh"]},
		"null": {"command": null, "args": null, "lifecycle": null, "livenessProbe": null},
		"text": {"command": "nsenter"},
		"another hook": {"lifecycle": {"postStart": {"httpGet": {"path": "/nsenter"}}}},
		"absent": {},
	}
	count(command_patterns.warn) == 0 with input as request("containers", fields)
}

test_says_nothing_without_parameters if {
	count(command_patterns.warn) == 0 with input as object.remove(request("containers", {"command": ["nsenter"]}), ["parameters"])
}

test_never_shows_the_command if {
	findings := command_patterns.warn with input as request("containers", {"command": ["nsenter", "--password=abc"]})
	count(findings) == 1
	not contains(json.marshal(fixtures.said(findings)), "abc")
}

test_warns_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(command_patterns.warn) == {"template.spec.podTemplate.spec.containers[0].command"} with input as fixtures.as_kind(request("containers", {"command": ["nsenter"]}), kind, path)
}
