package policies.library.id_ranges_test

import data.lib.fixtures
import data.policies.library.id_ranges

context(fields, parameters) := fixtures.configured(fixtures.pod_with({"securityContext": fields}), parameters)

bounds := {"min": 1000, "max": 2000}

test_denies_each_id[name] if {
	some name in ["runAsUser", "runAsGroup", "fsGroup"]
	id_ranges.deny == {{
		"message": "the id is not one from 1000 to 2000",
		"field": sprintf("spec.podTemplate.spec.securityContext.%s", [name]),
		"value": 999,
	}} with input as context({name: 999}, bounds)
}

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.fields(id_ranges.deny) == {sprintf("spec.podTemplate.spec.%s[0].securityContext.runAsUser", [list])} with input as fixtures.configured(fixtures.with_container(list, {"securityContext": {"runAsUser": 0}}), bounds)
}

test_denies_groups if {
	fixtures.fields(id_ranges.deny) == {"spec.podTemplate.spec.securityContext.supplementalGroups[1]"} with input as context({"supplementalGroups": [1000, 2001]}, bounds)
}

test_denies_by_default[note] if {
	some note, id in {"root": 0, "negative": -1, "too large": 2147483648, "text": "5"}
	count(id_ranges.deny) == 1 with input as context({"runAsUser": id}, {})
}

test_allows[note] if {
	some note, fields in {"least": {"runAsUser": 1000, "supplementalGroups": [1000]}, "most": {"fsGroup": 2000}, "null": {"runAsUser": null}, "empty": {}, "no groups": {"supplementalGroups": []}}
	count(id_ranges.deny) == 0 with input as context(fields, bounds)
}

test_allows_by_default[id] if {
	some id in [1, 2147483647]
	count(id_ranges.deny) == 0 with input as context({"runAsGroup": id}, {})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.pod_with({"securityContext": {"fsGroup": 0}}), {}), kind, path)
	fixtures.fields(id_ranges.deny) == {"template.spec.podTemplate.spec.securityContext.fsGroup"} with input as request
}

test_denies_merged_groups[note] if {
	some note, case in {"absent": [{}, ""], "null": [{"securityContext": null}, ""], "merged": [{"securityContext": {"supplementalGroupsPolicy": "Merge"}}, "Merge"]}
	id_ranges.deny == {{
		"message": "groups of the image are added to those of the Pod",
		"field": "spec.podTemplate.spec.securityContext.supplementalGroupsPolicy",
		"value": case[1],
	}} with input as fixtures.configured(fixtures.pod_with(case[0]), {"allowMergedGroups": false})
}

test_allows_merged_groups[note] if {
	some note, case in {"allowed": ["Merge", true], "strict": ["Strict", false]}
	spec := fixtures.pod_with({"securityContext": {"supplementalGroupsPolicy": case[0]}})
	count(id_ranges.deny) == 0 with input as fixtures.configured(spec, {"allowMergedGroups": case[1]})
}

test_judges_no_groups_of_a_pod_that_does_not_exist_yet if {
	count(id_ranges.deny) == 0 with input as {"kind": "SandboxClaim", "object": {}, "parameters": {"allowMergedGroups": false}}
}
