# METADATA
# title: Templates in use are not opened
# description: >-
#   A change of a template reaches the network of all its running Sandboxes at once, and the next Sandbox of everybody who
#   claims from it. While there are Sandboxes or claims, nothing is taken away that keeps them apart; a rule of the network
#   that is changed counts as new.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: template-weakening
#   code: SBX-099
#   category: network
#   severity: medium
#   enforcement: Warn
#   remediation: Make a new template and move the pools to it.
#   kinds: [SandboxTemplate]
#   controls: ["OWASP LLM06"]
package policies.library.template_weakening

import data.lib.values

deny contains finding if {
	used
	class(before) != ""
	class(after) == ""
	finding := found("podTemplate.spec.runtimeClassName", "the RuntimeClass is taken away")
}

# Which class is the stronger one is for the platform to say.
deny contains finding if {
	used
	not class(before) in {"", class(after)}
	class(after) != ""
	finding := {
		"message": "the template is in use, and its RuntimeClass is another",
		"field": "spec.podTemplate.spec.runtimeClassName",
		"value": class(after),
	}
}

class(spec) := values.string_at(spec, ["podTemplate", "spec", "runtimeClassName"])

deny contains finding if {
	used
	after.networkPolicyManagement == "Unmanaged"
	not open
	finding := found("networkPolicyManagement", "the NetworkPolicy is taken away")
}

deny contains finding if {
	used
	some name in ["envVarsInjectionPolicy", "volumeClaimTemplatesPolicy"]
	ranks(after[name]) > ranks(values.string_at(before, [name]))
	finding := found(name, "claims may bring more than before")
}

deny contains finding if {
	used
	values.given(before, ["networkPolicy"])
	not values.given(after, ["networkPolicy"])
	finding := found("networkPolicy", "its own rules are taken away, so that the default ones open the network")
}

deny contains finding if {
	used
	some direction in ["egress", "ingress"]
	not open
	some index, rule in after.networkPolicy[direction]
	not rule in values.collection_at(before, ["networkPolicy", direction])
	finding := found(sprintf("networkPolicy.%s[%v]", [direction, index]), "the rule was not there before")
}

# Which profile is the narrower one is for the platform to say.
deny contains finding if {
	used
	not open
	profile(input.old_object) != profile(input.object)
	not values.given(after, ["networkPolicy"])
	finding := {
		"message": "the template is in use, and its egress profile is another",
		"field": sprintf("metadata.annotations[%s]", [key_of_profile]),
		"value": profile(input.object),
	}
}

# Where nobody manages the network, nothing was closed.
open if before.networkPolicyManagement == "Unmanaged"

key_of_profile := "platform.agents.x-k8s.io/egress-profile"

profile(template) := values.given_or(template, ["metadata", "annotations", key_of_profile], "")

before := input.old_object.spec

after := input.object.spec

# Counted by the controller, whatever the request says.
used if {
	input.operation == "UPDATE"
	some name in ["claims", "sandboxes"]
	input.old_object.status[name] > 0
}

ranks(policy) := object.get({"Allowed": 1, "Overrides": 2}, policy, 0)

found(field, fault) := {
	"message": sprintf("the template is in use, and %s", [fault]),
	"field": sprintf("spec.%s", [field]),
	"value": "",
}
