package policies.library.proc_mount_test

import data.lib.fixtures
import data.policies.library.proc_mount

changed(list, value) := fixtures.sandbox(fixtures.with_container(list, {"securityContext": {"procMount": value}}))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	proc_mount.deny == {{
		"message": `container "main" has proc unmasked`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.procMount", [list]),
		"value": "Unmasked",
	}} with input as changed(list, "Unmasked")
}

test_denies_what_is_not_known[note] if {
	some note, value in {"empty": "", "lower case": "default", "object": {}}
	count(proc_mount.deny) == 1 with input as changed("containers", value)
}

test_allows[note] if {
	some note, value in {"null": null, "default": "Default"}
	count(proc_mount.deny) == 0 with input as changed("containers", value)
}

test_allows_the_plain_sandbox if {
	count(proc_mount.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"securityContext": {"procMount": "Unmasked"}}), {}), kind, path)
	fixtures.fields(proc_mount.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.procMount"} with input as request
}
