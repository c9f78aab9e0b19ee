package policies.library.mount_propagation_test

import data.lib.fixtures
import data.policies.library.mount_propagation

request(list, value) := fixtures.sandbox(fixtures.with_container(list, {"volumeMounts": [{"name": "a"}, {"name": "b", "mountPropagation": value}]}))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(mount_propagation.deny) == {{
		"message": `what container "main" mounts appears on the node`,
		"field": sprintf("spec.podTemplate.spec.%s[0].volumeMounts[1].mountPropagation", [list]),
		"value": "Bidirectional",
	}} with input as request(list, "Bidirectional")
	count(mount_propagation.warn) == 0 with input as request(list, "Bidirectional")
}

test_warns_in_every_list[list] if {
	some list in fixtures.lists
	mount_propagation.warn == {{
		"message": `what the node mounts later appears in container "main"`,
		"field": sprintf("spec.podTemplate.spec.%s[0].volumeMounts[1].mountPropagation", [list]),
		"value": "HostToContainer",
	}} with input as request(list, "HostToContainer")
	count(mount_propagation.deny) == 0 with input as request(list, "HostToContainer")
}

test_denies_what_nobody_knows[value] if {
	some value in ["bidirectional", "none", true]
	count(mount_propagation.deny) == 1 with input as request("containers", value)
}

test_allows[note] if {
	some note, value in {"none": "None", "empty": "", "null": null}
	count(mount_propagation.deny | mount_propagation.warn) == 0 with input as request("containers", value)
}

test_allows_no_mounts[note] if {
	some note, mounts in {"null": null, "empty": [], "no objects": ["a"]}
	count(mount_propagation.deny) == 0 with input as fixtures.sandbox(fixtures.with_container("containers", {"volumeMounts": mounts}))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(mount_propagation.deny) == {"template.spec.podTemplate.spec.containers[0].volumeMounts[1].mountPropagation"} with input as fixtures.as_kind(request("containers", "Bidirectional"), kind, path)
}
