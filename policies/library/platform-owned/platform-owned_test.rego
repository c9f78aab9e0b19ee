package policies.library.platform_owned_test

import data.policies.library.platform_owned

request(fields) := object.union({"user": {"username": "ann", "groups": ["red"]}, "parameters": {"groups": ["platform", "ci"]}}, fields)

test_denies if {
	platform_owned.deny == {{
		"message": "only some groups write templates and pools",
		"field": "spec",
		"value": "ann",
	}} with input as request({})
}

test_denies_users_without_groups if {
	count(platform_owned.deny) == 1 with input as {"user": {"username": "ann"}, "parameters": {"groups": ["ci"]}}
}

test_denies_without_parameters if {
	count(platform_owned.deny) == 1 with input as object.remove(request({"user": {"groups": ["ci"]}}), ["parameters"])
}

test_allows_a_group if {
	count(platform_owned.deny) == 0 with input as request({"user": {"groups": ["red", "platform"]}})
}

test_allows_what_is_stored[note] if {
	some note, fields in {"no name": {"user": {"username": ""}}, "null": {"user": {"username": null}}}
	count(platform_owned.deny) == 0 with input as request(fields)
	count(platform_owned.deny) == 0 with input as object.remove(request({}), ["user"])
}
