# METADATA
# title: A sandboxed runtime
# description: >-
#   Where the tier of the namespace requires it, a Sandbox runs under one of the tier's RuntimeClasses, and
#   never under one below the tier's floor: without one, untrusted code shares the kernel of the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/runtime-class/
# custom:
#   id: runtimeclass-required
#   code: SBX-001
#   category: isolation
#   severity: critical
#   enforcement: Deny
#   floor: true
#   remediation: Set runtimeClassName to a RuntimeClass of the tier.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0297"]
#   parameters:
#     always:
#       description: Require a RuntimeClass in every tier, not only in those that ask for one.
#       type: boolean
#       default: false
package policies.library.runtimeclass_required

import data.lib.pods
import data.lib.values

deny contains finding if {
	not chosen
	required
	pods.judged
	finding := {
		"message": "no RuntimeClass is set, so the Sandbox would share the kernel of the node",
		"field": pods.field("runtimeClassName"),
		"value": "",
		"remediation": remedy,
	}
}

deny contains finding if {
	excluded(chosen)
	pods.judged
	finding := {
		"message": sprintf("RuntimeClass %q is not one of this tier", [chosen]),
		"field": pods.field("runtimeClassName"),
		"value": chosen,
		"remediation": remedy,
	}
}

chosen := name if {
	name := pods.spec.runtimeClassName
	is_string(name)
	name != ""
}

required if required_by_tier

required if floored

required if {
	value := input.parameters.always
	value != false
}

required_by_tier if {
	value := input.tier.runtimeClass.required
	not value in {null, false}
}

floored if {
	value := input.tier.runtimeClass.floor
	not value in {null, ""}
}

excluded(class) if {
	required_by_tier
	not class in listed
}

excluded(class) if {
	floored
	not class in reaching
}

listed contains name if {
	some entry in values.collection_at(input.tier, ["runtimeClass", "classes"])
	name := class_name(entry)
}

# The classes that reach the floor, of the platform's order.
reaching contains name if {
	some name in values.collection_at(input.tier, ["runtimeClass", "atLeast"])
	is_string(name)
}

classes contains name if {
	some name in (listed | reaching)
	not excluded(name)
}

class_name(entry) := entry if is_string(entry)

class_name(entry) := values.given(entry, ["name"])

remedy := sprintf("Set runtimeClassName to one of: %s.", [concat(", ", classes)]) if {
	count(classes) > 0
} else := "Ask the platform team for a RuntimeClass: the tier names none."
