package policies.library.capabilities_drop_all_test

import data.lib.fixtures
import data.policies.library.capabilities_drop_all

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	spec := object.union({"containers": []}, {list: [object.union(fixtures.container, {"securityContext": {"capabilities": {"drop": ["NET_RAW"]}}})]})
	capabilities_drop_all.deny == {{
		"message": `container "main" keeps capabilities`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.capabilities.drop", [list]),
		"value": ["NET_RAW"],
	}} with input as fixtures.sandbox(spec)
}

test_denies_what_does_not_drop_all[note] if {
	some note, drop in {"absent": null, "empty": [], "lower case": ["all"], "text": "ALL"}
	count(capabilities_drop_all.deny) == 1 with input as fixtures.sandbox(fixtures.with_container("containers", {"securityContext": {"capabilities": {"drop": drop}}}))
}

test_allows[note] if {
	some note, drop in {"all": ["ALL"], "all and more": ["NET_RAW", "ALL"]}
	count(capabilities_drop_all.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"securityContext": {"capabilities": {"drop": drop}}}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(capabilities_drop_all.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.capabilities.drop"} with input as request
}
