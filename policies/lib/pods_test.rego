package lib.pods_test

import data.lib.pods

test_the_path_follows_the_input[note] if {
	some note, case in {
		"given": {"path": "template.spec.podTemplate", "field": "template.spec.podTemplate.spec.hostPID"},
		"absent": {"path": null, "field": "spec.podTemplate.spec.hostPID"},
		"wrong type": {"path": 7, "field": "spec.podTemplate.spec.hostPID"},
	}
	pods.field("hostPID") == case.field with input as {"pod_path": case.path}
}

test_a_pod_of_the_wrong_type_is_empty[note] if {
	some note, pod in {"null": null, "string": "x", "spec null": {"spec": null}, "spec string": {"spec": "x", "metadata": 1}}
	pods.spec == {} with input as {"pod": pod}
	pods.metadata == {} with input as {"pod": pod}
}

test_a_sandbox_is_judged_without_a_pod[kind] if {
	some kind in ["Sandbox", "SandboxTemplate", "", null]
	pods.judged with input as {"kind": kind}
}

test_a_claim_is_judged_only_with_a_pod[kind] if {
	some kind in ["SandboxClaim", "SandboxWarmPool"]
	not pods.judged with input as {"kind": kind}
	not pods.judged with input as {"kind": kind, "pod": null}
	pods.judged with input as {"kind": kind, "pod": {}}
}

test_an_empty_path_is_none if {
	pods.prefix == "spec.podTemplate" with input as {"pod_path": ""}
}
