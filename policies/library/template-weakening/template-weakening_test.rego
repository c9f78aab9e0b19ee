package policies.library.template_weakening_test

import data.lib.fixtures
import data.policies.library.template_weakening

change(before, after) := {
	"operation": "UPDATE",
	"old_object": {"spec": before, "status": {"sandboxes": 1}},
	"object": {"spec": after},
}

running(class) := {"podTemplate": {"spec": {"runtimeClassName": class}}}

policy(rules) := {"networkPolicy": rules}

rule := {"to": [{"podSelector": {}}]}

other := {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}

test_denies_no_runtime_class[note] if {
	some note, after in {"absent": {}, "null": running(null), "empty": running("")}
	template_weakening.deny == {{
		"message": "the template is in use, and the RuntimeClass is taken away",
		"field": "spec.podTemplate.spec.runtimeClassName",
		"value": "",
	}} with input as change(running("gvisor"), after)
}

test_denies_another_runtime_class if {
	template_weakening.deny == {{
		"message": "the template is in use, and its RuntimeClass is another",
		"field": "spec.podTemplate.spec.runtimeClassName",
		"value": "runc",
	}} with input as change(running("gvisor"), running("runc"))
}

test_denies_an_unmanaged_network[note] if {
	some note, before in {"absent": {}, "null": {"networkPolicyManagement": null}, "managed": {"networkPolicyManagement": "Managed"}}
	template_weakening.deny == {{
		"message": "the template is in use, and the NetworkPolicy is taken away",
		"field": "spec.networkPolicyManagement",
		"value": "",
	}} with input as change(before, {"networkPolicyManagement": "Unmanaged"})
}

test_denies_more_of_claims[name] if {
	some name in ["envVarsInjectionPolicy", "volumeClaimTemplatesPolicy"]
	some case in [["Disallowed", "Allowed"], ["Disallowed", "Overrides"], ["Allowed", "Overrides"], [null, "Allowed"], ["", "Allowed"]]
	template_weakening.deny == {{
		"message": "the template is in use, and claims may bring more than before",
		"field": sprintf("spec.%s", [name]),
		"value": "",
	}} with input as change({name: case[0]}, {name: case[1]})
}

test_denies_each_step[note] if {
	some note, case in {"first": ["Disallowed", "Allowed"], "second": ["Allowed", "Overrides"], "absent": [null, "Overrides"]}
	count(template_weakening.deny) == 1 with input as change({"envVarsInjectionPolicy": case[0]}, {"envVarsInjectionPolicy": case[1]})
}

test_denies_no_policy[note] if {
	some note, after in {"absent": {}, "null": policy(null)}
	template_weakening.deny == {{
		"message": "the template is in use, and its own rules are taken away, so that the default ones open the network",
		"field": "spec.networkPolicy",
		"value": "",
	}} with input as change(policy({}), after)
}

test_denies_a_new_rule[direction] if {
	some direction in ["egress", "ingress"]
	template_weakening.deny == {{
		"message": "the template is in use, and the rule was not there before",
		"field": sprintf("spec.networkPolicy.%s[1]", [direction]),
		"value": "",
	}} with input as change(policy({direction: [rule]}), policy({direction: [rule, other]}))
	count(template_weakening.deny) == 1 with input as change(policy({direction: null}), policy({direction: [rule]}))
	count(template_weakening.deny) == 1 with input as change(policy({"a": [rule]}), policy({direction: [rule]}))
	count(template_weakening.deny) == 1 with input as change({}, policy({direction: [rule]}))
}

weakened := change(running("gvisor"), running(""))

test_counts_claims_and_sandboxes[name] if {
	some name in ["claims", "sandboxes"]
	count(template_weakening.deny) == 1 with input as object.union(weakened, {"old_object": {"status": {"sandboxes": 0, name: 2}}})
}

test_allows_what_nobody_uses[note] if {
	some note, given in {
		"none": object.union(weakened, {"old_object": {"status": {"sandboxes": 0, "claims": 0}}}),
		"pools only": object.union(weakened, {"old_object": {"status": {"sandboxes": 0, "warmPools": 1}}}),
		"no status": object.remove(object.union(weakened, {"old_object": {"status": null}}), []),
		"a new template": object.union(object.remove(weakened, ["old_object"]), {"operation": "CREATE"}),
		"not an update": object.union(weakened, {"operation": "CREATE"}),
	}
	count(template_weakening.deny) == 0 with input as given
}

test_allows[note] if {
	some note, case in {
		"nothing": [{}, {}],
		"the same class": [running("gvisor"), running("gvisor")],
		"a first class": [running(null), running("gvisor")],
		"managed again": [{"networkPolicyManagement": "Unmanaged"}, {"networkPolicyManagement": "Managed"}],
		"unmanaged still": [{"networkPolicyManagement": "Unmanaged"}, {"networkPolicyManagement": "Unmanaged"}],
		"less of claims": [{"envVarsInjectionPolicy": "Overrides"}, {"envVarsInjectionPolicy": "Allowed"}],
		"as much of claims": [{"envVarsInjectionPolicy": "Allowed", "volumeClaimTemplatesPolicy": "Overrides"}, {"envVarsInjectionPolicy": "Allowed", "volumeClaimTemplatesPolicy": "Overrides"}],
		"a rule less": [policy({"egress": [rule, other]}), policy({"egress": [other]})],
		"a first policy without rules": [{}, policy({"egress": []})],
		"a first policy where nobody managed the network": [{"networkPolicyManagement": "Unmanaged"}, policy({"egress": [rule]})],
	}
	fixtures.fields(template_weakening.deny) == set() with input as change(case[0], case[1])
}

of_profile(spec, name) := {"spec": spec, "metadata": {"annotations": {"platform.agents.x-k8s.io/egress-profile": name}}}

test_denies_another_egress_profile[note] if {
	some note, case in {
		"another": [of_profile({}, "none"), of_profile({}, "public"), "public"],
		"a first": [{"spec": {}}, of_profile({}, "public"), "public"],
		"none any more": [of_profile({}, "none"), {"spec": {}, "metadata": {"annotations": null}}, ""],
	}
	template_weakening.deny == {{
		"message": "the template is in use, and its egress profile is another",
		"field": "metadata.annotations[platform.agents.x-k8s.io/egress-profile]",
		"value": case[2],
	}} with input as {"operation": "UPDATE", "old_object": object.union(case[0], {"status": {"claims": 1}}), "object": case[1]}
}

test_allows_an_egress_profile[note] if {
	some note, case in {
		"the same": [of_profile({}, "none"), of_profile({}, "none")],
		"one that means nothing": [of_profile({"networkPolicyManagement": "Unmanaged"}, "none"), of_profile({"networkPolicyManagement": "Unmanaged"}, "public")],
		"one that own rules replace": [of_profile(policy({}), "none"), of_profile(policy({}), "public")],
	}
	fixtures.fields(template_weakening.deny) == set() with input as {"operation": "UPDATE", "old_object": object.union(case[0], {"status": {"claims": 1}}), "object": case[1]}
}
