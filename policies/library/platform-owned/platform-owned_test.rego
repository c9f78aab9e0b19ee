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

stored := {"metadata": {"name": "a", "labels": {"team": "red"}, "annotations": {"note": "x"}}, "spec": {"replicas": 1}}

update(object) := request({"operation": "UPDATE", "object": object, "old_object": stored})

test_denies_a_change[note] if {
	some note, patch in {
		"of the spec": {"spec": {"replicas": 2}},
		"of a label": {"metadata": {"labels": {"team": "blue"}}},
		"of an annotation": {"metadata": {"annotations": {"note": "y"}}},
	}
	count(platform_owned.deny) == 1 with input as update(object.union(stored, patch))
}

test_denies_what_takes_metadata_away[note] if {
	some note, path in {"labels": "metadata/labels", "annotations": "metadata/annotations"}
	count(platform_owned.deny) == 1 with input as update(json.remove(stored, [path]))
}

test_denies_who_creates_what_is_alike if {
	count(platform_owned.deny) == 1 with input as object.union(update(stored), {"operation": "CREATE"})
}

test_allows_what_was_there_before if {
	count(platform_owned.deny) == 0 with input as update(object.union(stored, {"metadata": {"finalizers": ["a"]}}))
	bare := {"metadata": {"name": "a"}, "spec": {}}
	count(platform_owned.deny) == 0 with input as request({"operation": "UPDATE", "object": bare, "old_object": bare})
}

test_allows_a_group if {
	count(platform_owned.deny) == 0 with input as request({"user": {"groups": ["red", "platform"]}})
}

test_allows_what_is_stored[note] if {
	some note, fields in {"no name": {"user": {"username": ""}}, "null": {"user": {"username": null}}}
	count(platform_owned.deny) == 0 with input as request(fields)
	count(platform_owned.deny) == 0 with input as object.remove(request({}), ["user"])
}
