package policies.library.capabilities_add_test

import data.lib.fixtures
import data.policies.library.capabilities_add

parameters := {"allowed": ["CHOWN", "NET_BIND_SERVICE"]}

adding(list, names) := fixtures.configured(
	fixtures.with_container(list, {"securityContext": {"capabilities": {"add": names}}}),
	parameters,
)

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	capabilities_add.deny == {{
		"message": `container "main" adds capability SYS_ADMIN`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.capabilities.add[1]", [list]),
		"value": "SYS_ADMIN",
	}} with input as adding(list, ["CHOWN", "SYS_ADMIN"])
}

test_denies_other_spellings[name] if {
	some name in ["chown", "CAP_CHOWN", " CHOWN", "ALL", "", null, 5]
	count(capabilities_add.deny) == 1 with input as adding("containers", [name])
}

test_denies_all_without_parameters if {
	count(capabilities_add.deny) == 1 with input as {"pod": {"spec": {"containers": [{"securityContext": {"capabilities": {"add": ["CHOWN"]}}}]}}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(capabilities_add.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.capabilities.add[0]"} with input as fixtures.as_kind(adding("containers", ["NET_RAW"]), kind, path)
}

test_allows[note] if {
	some note, names in {"listed": ["CHOWN", "NET_BIND_SERVICE"], "empty": [], "null": null}
	count(capabilities_add.deny) == 0 with input as adding("containers", names)
}

test_allows_the_plain_sandbox if {
	count(capabilities_add.deny) == 0 with input as fixtures.configured(fixtures.plain, parameters)
}
