package policies.library.node_recon_test

import data.lib.fixtures
import data.policies.library.node_recon

variable(list, source) := fixtures.sandbox(fixtures.with_container(list, {"env": [{"name": "A", "value": "spec.nodeName"}, {"name": "B", "valueFrom": source}]}))

items(place) := [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}, {"path": "b", "fieldRef": {"fieldPath": place}}]

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	some place in ["spec.nodeName", "status.hostIP", "status.hostIPs"]
	node_recon.deny == {{
		"message": sprintf("the Sandbox is told %s of its node", [place]),
		"field": sprintf("spec.podTemplate.spec.%s[0].env[1].valueFrom.fieldRef.fieldPath", [list]),
		"value": place,
	}} with input as variable(list, {"fieldRef": {"fieldPath": place}})
}

test_denies_each[place] if {
	some place in ["spec.nodeName", "status.hostIP", "status.hostIPs"]
	count(node_recon.deny) == 1 with input as variable("containers", {"fieldRef": {"fieldPath": place}})
}

test_denies_a_file if {
	fixtures.fields(node_recon.deny) == {"spec.podTemplate.spec.volumes[0].downwardAPI.items[1].fieldRef.fieldPath"} with input as fixtures.sandbox(fixtures.with_volumes([{"name": "a", "downwardAPI": {"items": items("status.hostIP")}}]))
	fixtures.fields(node_recon.deny) == {"spec.podTemplate.spec.volumes[0].projected.sources[0].downwardAPI.items[1].fieldRef.fieldPath"} with input as fixtures.sandbox(fixtures.with_volumes([{"name": "a", "projected": {"sources": [{"downwardAPI": {"items": items("spec.nodeName")}}]}}]))
}

test_allows[note] if {
	some note, source in {"of the Pod": {"fieldRef": {"fieldPath": "status.podIP"}}, "resources": {"resourceFieldRef": {"resource": "limits.cpu"}}, "null": null, "reference null": {"fieldRef": null}}
	count(node_recon.deny) == 0 with input as variable("containers", source)
}

test_allows_other_volumes[note] if {
	some note, volume in {"files of the Pod": {"name": "a", "downwardAPI": {"items": items("metadata.name")}}, "null": {"name": "a", "downwardAPI": null, "projected": null}, "projected": {"name": "a", "projected": {"sources": [{"downwardAPI": {"items": items("metadata.name")}}]}}}
	count(node_recon.deny) == 0 with input as fixtures.sandbox(fixtures.with_volumes([volume]))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(node_recon.deny) == {"template.spec.podTemplate.spec.containers[0].env[1].valueFrom.fieldRef.fieldPath"} with input as fixtures.as_kind(variable("containers", {"fieldRef": {"fieldPath": "status.hostIP"}}), kind, path)
}
