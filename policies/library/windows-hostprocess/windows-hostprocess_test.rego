package policies.library.windows_hostprocess_test

import data.lib.fixtures
import data.policies.library.windows_hostprocess

changed(list, value) := fixtures.sandbox(fixtures.with_container(list, {"securityContext": {"windowsOptions": {"hostProcess": value}}}))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	windows_hostprocess.deny == {{
		"message": "a HostProcess container is a process of the node",
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.windowsOptions.hostProcess", [list]),
		"value": true,
	}} with input as changed(list, true)
}

test_denies_what_is_not_known[note] if {
	some note, value in {"text": "false", "zero": 0}
	count(windows_hostprocess.deny) == 1 with input as changed("containers", value)
}

test_allows[note] if {
	some note, value in {"null": null, "false": false}
	count(windows_hostprocess.deny) == 0 with input as changed("containers", value)
}

test_allows_the_plain_sandbox if {
	count(windows_hostprocess.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"windowsOptions": {"hostProcess": true}}})
	fixtures.fields(windows_hostprocess.deny) == {"spec.podTemplate.spec.securityContext.windowsOptions.hostProcess"} with input as fixtures.sandbox(spec)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"securityContext": {"windowsOptions": {"hostProcess": true}}}), {}), kind, path)
	fixtures.fields(windows_hostprocess.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.windowsOptions.hostProcess"} with input as request
}
