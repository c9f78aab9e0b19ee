package policies.library.selinux_test

import data.lib.fixtures
import data.policies.library.selinux

options(list, value) := fixtures.configured(
	fixtures.with_container(list, {"securityContext": {"seLinuxOptions": value}}),
	{"allowedTypes": ["container_t"]},
)

test_denies_user_and_role_in_every_list[list] if {
	some list in fixtures.lists
	selinux.deny == {
		{
			"message": "the SELinux user is chosen",
			"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.seLinuxOptions.user", [list]),
			"value": "system_u",
		},
		{
			"message": "the SELinux role is chosen",
			"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.seLinuxOptions.role", [list]),
			"value": 5,
		},
	} with input as options(list, {"user": "system_u", "role": 5, "type": "container_t", "level": "s0"})
}

test_denies_a_type if {
	selinux.deny == {{
		"message": "the SELinux type is not one for containers",
		"field": "spec.podTemplate.spec.containers[0].securityContext.seLinuxOptions.type",
		"value": "spc_t",
	}} with input as options("containers", {"type": "spc_t"})
}

test_denies_every_type_without_parameters if {
	count(selinux.deny) == 1 with input as object.remove(options("containers", {"type": "container_t"}), ["parameters"])
}

test_denies_for_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"seLinuxOptions": {"user": "root"}}})
	fixtures.fields(selinux.deny) == {"spec.podTemplate.spec.securityContext.seLinuxOptions.user"} with input as fixtures.sandbox(spec)
}

test_allows[note] if {
	some note, value in {"null": null, "empty": {}, "empty fields": {"user": "", "role": "", "type": ""}, "null fields": {"user": null, "role": null, "type": null}, "listed": {"type": "container_t", "level": "s0"}}
	count(selinux.deny) == 0 with input as options("containers", value)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"securityContext": {"seLinuxOptions": {"type": "x"}}}), {}), kind, path)
	fixtures.fields(selinux.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.seLinuxOptions.type"} with input as request
}
