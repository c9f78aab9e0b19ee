package policies.library.subpath_test

import data.lib.fixtures
import data.policies.library.subpath

request(list, mount, any) := fixtures.configured(fixtures.with_container(list, {"volumeMounts": [{"name": "a"}, mount]}), {"any": any})

test_denies_what_climbs_in_every_list[list] if {
	some list in fixtures.lists
	some name in ["subPath", "subPathExpr"]
	fixtures.said(subpath.deny) == {{
		"message": `container "main" mounts a path that climbs`,
		"field": sprintf("spec.podTemplate.spec.%s[0].volumeMounts[1].%s", [list, name]),
		"value": "a/../../b",
	}} with input as request(list, {name: "a/../../b"}, false)
}

test_denies_what_climbs[written] if {
	some written in ["..", "../a", "a/..", "$(A)/.."]
	some finding in subpath.deny with input as request("containers", {"subPathExpr": written}, false)
	finding.message == `container "main" mounts a path that climbs`
}

test_denies_variables if {
	fixtures.said(subpath.deny) == {{
		"message": `container "main" mounts a path made of variables`,
		"field": "spec.podTemplate.spec.containers[0].volumeMounts[1].subPathExpr",
		"value": "a/$(NAME)",
	}} with input as request("containers", {"subPathExpr": "a/$(NAME)"}, false)
}

test_denies_any_part[name] if {
	some name in ["subPath", "subPathExpr"]
	fixtures.said(subpath.deny) == {{
		"message": `container "main" mounts a part of a volume`,
		"field": sprintf("spec.podTemplate.spec.containers[0].volumeMounts[1].%s", [name]),
		"value": "a/b",
	}} with input as request("containers", {name: "a/b"}, true)
}

test_allows[note] if {
	some note, mount in {"part": {"subPath": "a/b"}, "dots": {"subPath": "a/..b/...", "subPathExpr": "a"}, "a name, not a variable": {"subPath": "$(NAME)"}, "null": {"subPath": null, "subPathExpr": null}, "empty": {"subPath": "", "subPathExpr": ""}, "absent": {}}
	count(subpath.deny) == 0 with input as request("containers", mount, false)
}

test_allows_whole_volumes if {
	count(subpath.deny) == 0 with input as request("containers", {"subPath": "", "subPathExpr": null}, true)
}

test_without_parameters_parts_are_allowed if {
	count(subpath.deny) == 0 with input as object.remove(request("containers", {"subPath": "a"}, true), ["parameters"])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(subpath.deny) == {"template.spec.podTemplate.spec.containers[0].volumeMounts[1].subPath"} with input as fixtures.as_kind(request("containers", {"subPath": ".."}, false), kind, path)
}
