package policies.library.inline_csi_test

import data.lib.fixtures
import data.policies.library.inline_csi

request(value) := fixtures.configured(fixtures.with_volumes([{"name": "a", "csi": value}]), {"allowedDrivers": ["ours.example.com"]})

test_denies[note] if {
	some note, case in {"another": [{"driver": "theirs.example.com"}, "theirs.example.com"], "absent": [{}, ""], "null": [{"driver": null}, ""], "text": ["ours.example.com", ""]}
	fixtures.said(inline_csi.deny) == {{
		"message": sprintf(`volume "a" uses the CSI driver %q`, [case[1]]),
		"field": "spec.podTemplate.spec.volumes[0].csi.driver",
		"value": case[1],
	}} with input as request(case[0])
}

test_denies_without_parameters if {
	count(inline_csi.deny) == 1 with input as object.remove(request({"driver": "ours.example.com"}), ["parameters"])
}

test_allows[note] if {
	some note, value in {"listed": {"driver": "ours.example.com"}, "null": null}
	count(inline_csi.deny) == 0 with input as request(value)
}

test_allows_the_plain_sandbox if {
	count(inline_csi.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_volumes([{"csi": {}}]), {}), kind, path)
	fixtures.fields(inline_csi.deny) == {"template.spec.podTemplate.spec.volumes[0].csi.driver"} with input as request
}
