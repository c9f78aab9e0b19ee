package policies.library.runtimeclass_required_test

import data.lib.fixtures
import data.policies.library.runtimeclass_required

path := "spec.podTemplate.spec.runtimeClassName"

in_tier(spec, runtime_class) := object.union(fixtures.sandbox(spec), {"tier": {"runtimeClass": runtime_class}})

required := {"required": true, "classes": ["gvisor", {"name": "kata"}]}

test_denies_when_none_is_set[note] if {
	some note, fields in {"absent": {}, "null": {"runtimeClassName": null}, "empty": {"runtimeClassName": ""}, "wrong type": {"runtimeClassName": 5}}
	some finding in runtimeclass_required.deny with input as in_tier(fixtures.pod_with(fields), required)
	finding == {
		"message": "no RuntimeClass is set, so the Sandbox would share the kernel of the node",
		"field": path,
		"value": "",
		"remediation": "Set runtimeClassName to one of: gvisor, kata.",
	}
}

test_denies_a_class_of_no_tier[class] if {
	some class in ["runc", "gVisor", "gvisor2", "gvis"]
	runtimeclass_required.deny == {{
		"message": sprintf("RuntimeClass %q is not one of this tier", [class]),
		"field": path,
		"value": class,
		"remediation": "Set runtimeClassName to one of: gvisor, kata.",
	}} with input as in_tier(fixtures.pod_with({"runtimeClassName": class}), required)
}

test_denies_when_required_has_the_wrong_type[note] if {
	some note, value in {"string": "true", "number": 1}
	count(runtimeclass_required.deny) == 1 with input as in_tier(fixtures.plain, {"required": value, "classes": ["gvisor"]})
}

test_denies_every_class_when_the_tier_names_none[note] if {
	some note, classes in {"absent": null, "empty": [], "unreadable": [null, 5, {}]}
	some finding in runtimeclass_required.deny with input as in_tier(fixtures.pod_with({"runtimeClassName": "gvisor"}), {"required": true, "classes": classes})
	finding.remediation == "Ask the platform team for a RuntimeClass: the tier names none."
}

test_denies_without_a_pod if {
	count(runtimeclass_required.deny) == 1 with input as {"kind": "Sandbox", "tier": {"runtimeClass": required}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, prefix in fixtures.borrowed
	request := fixtures.as_kind(in_tier(fixtures.plain, required), kind, prefix)
	fixtures.fields(runtimeclass_required.deny) == {"template.spec.podTemplate.spec.runtimeClassName"} with input as request
}

test_leaves_a_claim_without_a_template_alone[kind] if {
	some kind, _ in fixtures.borrowed
	count(runtimeclass_required.deny) == 0 with input as {"kind": kind, "tier": {"runtimeClass": required}}
}

test_always_asks_in_every_tier if {
	request := object.union(in_tier(fixtures.plain, {"required": false}), {"parameters": {"always": true}})
	fixtures.fields(runtimeclass_required.deny) == {path} with input as request
}

test_always_takes_any_class if {
	request := object.union(in_tier(fixtures.pod_with({"runtimeClassName": "other"}), {"required": false}), {"parameters": {"always": true}})
	count(runtimeclass_required.deny) == 0 with input as request
}

test_allows_a_class_of_the_tier[class] if {
	some class in ["gvisor", "kata"]
	count(runtimeclass_required.deny) == 0 with input as in_tier(fixtures.pod_with({"runtimeClassName": class}), required)
}

test_allows_where_the_tier_does_not_ask[note] if {
	some note, tier in {"false": {"required": false, "classes": ["gvisor"]}, "null": {"required": null}, "absent": {}, "no entry": null}
	count(runtimeclass_required.deny) == 0 with input as in_tier(fixtures.plain, tier)
	count(runtimeclass_required.deny) == 0 with input as in_tier(fixtures.pod_with({"runtimeClassName": "other"}), tier)
}

test_allows_without_a_tier if {
	count(runtimeclass_required.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

floored := {"classes": ["gvisor"], "floor": "gvisor", "atLeast": ["kata", "gvisor"]}

test_denies_below_the_floor[class] if {
	some class in ["runc", "wasm"]
	runtimeclass_required.deny == {{
		"message": sprintf("RuntimeClass %q is not one of this tier", [class]),
		"field": path,
		"value": class,
		"remediation": "Set runtimeClassName to one of: gvisor, kata.",
	}} with input as in_tier(fixtures.pod_with({"runtimeClassName": class}), floored)
}

test_denies_none_where_there_is_a_floor if {
	fixtures.fields(runtimeclass_required.deny) == {path} with input as in_tier(fixtures.plain, floored)
}

test_denies_every_class_when_nothing_reaches_the_floor[note] if {
	some note, reach in {"absent": null, "empty": [], "unreadable": [null, 5]}
	some finding in runtimeclass_required.deny with input as in_tier(
		fixtures.pod_with({"runtimeClassName": "gvisor"}),
		{"floor": "gvisor", "atLeast": reach},
	)
	finding.remediation == "Ask the platform team for a RuntimeClass: the tier names none."
}

test_denies_what_is_above_the_floor_and_not_listed if {
	some finding in runtimeclass_required.deny with input as in_tier(
		fixtures.pod_with({"runtimeClassName": "kata"}),
		object.union(floored, {"required": true}),
	)
	finding.remediation == "Set runtimeClassName to one of: gvisor."
}

test_denies_a_floor_of_the_wrong_type if {
	fixtures.fields(runtimeclass_required.deny) == {path} with input as in_tier(fixtures.plain, {"floor": 5})
}

test_allows_what_reaches_the_floor[class] if {
	some class in ["gvisor", "kata"]
	count(runtimeclass_required.deny) == 0 with input as in_tier(fixtures.pod_with({"runtimeClassName": class}), floored)
}

test_allows_without_a_floor[note] if {
	some note, floor in {"empty": "", "null": null}
	count(runtimeclass_required.deny) == 0 with input as in_tier(fixtures.plain, {"floor": floor, "atLeast": ["gvisor"]})
}
