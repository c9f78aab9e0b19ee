package policies.library.emptydir_test

import data.lib.fixtures
import data.policies.library.emptydir

directory(value) := fixtures.configured(fixtures.with_volumes([{"name": "a", "emptyDir": value}]), {"maxSize": "10Gi", "maxMemorySize": "1Gi"})

test_denies[note] if {
	some note, case in {
		"absent": [{}, "", "10Gi"],
		"null": [{"sizeLimit": null}, "", "10Gi"],
		"zero": [{"sizeLimit": "0"}, "0", "10Gi"],
		"word": [{"sizeLimit": "lots"}, "lots", "10Gi"],
		"too large": [{"sizeLimit": "11Gi"}, "11Gi", "10Gi"],
		"too large for memory": [{"medium": "Memory", "sizeLimit": "2Gi"}, "2Gi", "1Gi"],
		"text": ["x", "", "10Gi"],
	}
	fixtures.said(emptydir.deny) == {{
		"message": sprintf(`volume "a" has no size limit within %s`, [case[2]]),
		"field": "spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit",
		"value": case[1],
	}} with input as directory(case[0])
}

test_denies_huge_pages if {
	emptydir.deny == {{
		"message": `volume "a" is of a medium other than disk and memory`,
		"field": "spec.podTemplate.spec.volumes[0].emptyDir.medium",
		"value": "HugePages-2Mi",
	}} with input as directory({"medium": "HugePages-2Mi", "sizeLimit": "1Gi"})
}

test_denies_all_without_parameters[medium] if {
	some medium in ["", "Memory"]
	count(emptydir.deny) == 1 with input as object.remove(directory({"medium": medium, "sizeLimit": "1"}), ["parameters"])
}

test_allows[note] if {
	some note, value in {"least": {"sizeLimit": "1m"}, "most": {"sizeLimit": "10Gi"}, "most of memory": {"medium": "Memory", "sizeLimit": "1Gi"}, "no medium": {"medium": null, "sizeLimit": "10Gi"}, "null": null}
	count(emptydir.deny) == 0 with input as directory(value)
}

test_allows_the_plain_sandbox if {
	count(emptydir.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_volumes([{"name": "a", "emptyDir": {}}]), {}), kind, path)
	fixtures.fields(emptydir.deny) == {"template.spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit"} with input as request
}

test_how_much_a_directory_may_hold[note] if {
	some note, case in {"absent": [{}, 1e300], "nothing": [{"sizeLimit": "0"}, 1e300], "too much": [{"sizeLimit": "1Pi"}, 1125899906842624000], "a word": [{"sizeLimit": "much"}, 0]}
	{finding.amount | some finding in emptydir.deny} == {case[1]} with input as fixtures.configured(fixtures.with_volumes([{"name": "a", "emptyDir": case[0]}]), {"maxSize": "1Gi", "maxMemorySize": "1Gi"})
}
