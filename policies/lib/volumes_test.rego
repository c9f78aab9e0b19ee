package lib.volumes_test

import data.lib.fixtures
import data.lib.volumes

test_volumes_by_path if {
	volumes.by_path == {
		"spec.podTemplate.spec.volumes[0]": {"name": "a"},
		"spec.podTemplate.spec.volumes[1]": {},
	} with input as fixtures.sandbox({"volumes": [{"name": "a"}, null]})
}

test_null_is_no_source if {
	volumes.sources({"name": "a", "hostPath": null, "emptyDir": {}}) == {"emptyDir"}
}

test_label if {
	volumes.label({"name": "a"}) == `volume "a"`
	volumes.label({"name": ""}) == "a volume without a name"
}

test_claims_of_the_object_and_of_ephemeral_volumes if {
	request := object.union(
		fixtures.sandbox({"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeName": "x"}}}}]}),
		{"object": {"spec": {"volumeClaimTemplates": [{"spec": {"volumeName": "y"}}, null]}}},
	)
	volumes.claims == {
		"spec.volumeClaimTemplates[0].spec": {"volumeName": "y"},
		"spec.volumeClaimTemplates[1].spec": {},
		"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec": {"volumeName": "x"},
	} with input as request
}

test_claims_of_the_template_that_an_object_borrows_from if {
	request := {
		"kind": "SandboxClaim",
		"object": {"spec": {"volumeClaimTemplates": [{"spec": {"volumeName": "x"}}]}},
		"template": {"spec": {"volumeClaimTemplates": [null, {"spec": {"volumeName": "y"}}]}},
	}
	volumes.claims == {
		"spec.volumeClaimTemplates[0].spec": {"volumeName": "x"},
		"template.spec.volumeClaimTemplates[0].spec": {},
		"template.spec.volumeClaimTemplates[1].spec": {"volumeName": "y"},
	} with input as request
}

overriding(policy) := {
	"kind": "SandboxClaim",
	"object": {"spec": {"volumeClaimTemplates": [
		{"metadata": {"name": "b"}, "spec": {"volumeName": "x"}},
		{"metadata": {"name": ""}},
	]}},
	"template": {"spec": {"volumeClaimTemplatesPolicy": policy, "volumeClaimTemplates": [
		{"metadata": {"name": "a"}},
		{"metadata": {"name": "b"}},
		{"metadata": {"name": ""}},
		{},
	]}},
}

test_a_template_that_the_claim_replaces_makes_no_volume[policy] if {
	some policy, replaced in {"Overrides": {"template.spec.volumeClaimTemplates[1].spec"}, "Allowed": set(), "Disallowed": set()}
	object.keys(volumes.claims) == {
		"spec.volumeClaimTemplates[0].spec", "spec.volumeClaimTemplates[1].spec",
		"template.spec.volumeClaimTemplates[0].spec", "template.spec.volumeClaimTemplates[1].spec",
		"template.spec.volumeClaimTemplates[2].spec", "template.spec.volumeClaimTemplates[3].spec",
	} - replaced with input as overriding(policy)
}

test_annotations_of_claims if {
	request := object.union(
		fixtures.sandbox({"volumes": [{"ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": "b"}}}}}]}),
		{"object": {"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": {"c": "d"}}}, null]}}},
	)
	volumes.claim_annotations == {
		"spec.volumeClaimTemplates[0].metadata.annotations": {"c": "d"},
		"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations": {"a": "b"},
	} with input as request
	volumes.claim_annotations == {"e": {"f": "g"}} with input as {"claim_annotations": {"e": {"f": "g"}}}
	volumes.claim_annotations == {} with input as {"claim_annotations": "x"}
}

test_where_the_templates_of_volumes_stand[kind] if {
	some kind, field in {
		"Sandbox": "spec.volumeClaimTemplates",
		"SandboxTemplate": "spec.volumeClaimTemplates",
		"SandboxWarmPool": "template.spec.volumeClaimTemplates",
		"SandboxClaim": "template.spec.volumeClaimTemplates",
	}
	volumes.templates_field == field with input as {"kind": kind}
}

test_the_servers_lists_are_used if {
	volumes.by_path == {"a": {"name": "b"}} with input as {"volumes": {"a": {"name": "b"}}}
	volumes.claims == {"a": {"volumeName": "b"}} with input as {"claims": {"a": {"volumeName": "b"}}}
	volumes.by_path == {} with input as {"volumes": "x"}
	volumes.claims == {} with input as {"claims": "x"}
}

test_an_ephemeral_volume_without_a_template_makes_a_claim_all_the_same if {
	volumes.claims == {"spec.podTemplate.spec.volumes[1].ephemeral.volumeClaimTemplate.spec": {}} with input as fixtures.sandbox({"volumes": [{"emptyDir": {}}, {"ephemeral": {}}]})
}

whole := {}

part_of_it := {"subPath": "d", "subPathExpr": "e"}

all_ways(container, where) := {[container, where, way] | some way in ["reading", "what is within", "writing"]}

test_all_that_a_volume_opens if {
	containers := [
		{"name": "a", "volumeMounts": [{"name": "v", "readOnly": true, "recursiveReadOnly": "Enabled"}, {"name": "w"}, null]},
		{"name": "b", "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]},
		{"name": "c", "volumeMounts": [{"name": "v", "readOnly": true, "subPath": "d", "subPathExpr": "e"}]},
		{"name": "d", "volumeMounts": [{"name": "v", "readOnly": false, "recursiveReadOnly": "Enabled"}]},
		{"volumeMounts": null},
	]
	input_of := fixtures.sandbox({"containers": containers})
	volumes.opened({"name": "v"}, {"readOnly": true, "a": "b"}) == union({
		{{"a": "b"}, ["a", whole, "reading"], ["c", part_of_it, "reading"], ["c", part_of_it, "what is within"]},
		all_ways("b", whole),
		all_ways("d", whole),
	}) with input as input_of
	volumes.opened({"name": "x"}, {"readOnly": false}) == {{}, "for writing"} with input as input_of
	volumes.opened({"name": "x"}, "secret") == {"secret", "for writing"} with input as input_of
	volumes.opened({}, {}) == {{}, "for writing"} with input as input_of
}
