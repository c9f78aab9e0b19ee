# METADATA
# title: AppArmor stays on
# description: >-
#   A container runs under the AppArmor profile of the runtime, or one of the node that the platform
#   team allows. The field counts and so does the older annotation, which is often forgotten.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: apparmor
#   code: SBX-016
#   category: isolation
#   severity: high
#   enforcement: Deny
#   remediation: Remove the profile, or set type to RuntimeDefault.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:appArmorProfile"]
#   parameters:
#     allowedLocalhost:
#       description: Profiles of the node that may be used.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.apparmor

import data.lib.containers
import data.lib.labels
import data.lib.values

deny contains finding if {
	some path, owner in containers.owners
	profile := owner.securityContext.appArmorProfile
	profile != null
	not allowed(profile)
	finding := {
		"message": "the AppArmor profile is neither that of the runtime nor an allowed one",
		"field": sprintf("%s.securityContext.appArmorProfile", [path]),
		"value": profile,
	}
}

deny contains finding if {
	some path, annotations in labels.annotations_of_pods
	some key, value in annotations
	startswith(key, "container.apparmor.security.beta.kubernetes.io/")
	not allowed_text(value)
	finding := {
		"message": "the AppArmor profile is neither that of the runtime nor an allowed one",
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}

allowed(profile) if profile.type == "RuntimeDefault"

allowed(profile) if {
	profile.type == "Localhost"
	profile.localhostProfile in values.collection_at(input.parameters, ["allowedLocalhost"])
}

allowed_text("runtime/default")

allowed_text(value) if {
	some profile in values.collection_at(input.parameters, ["allowedLocalhost"])
	value == sprintf("localhost/%s", [profile])
}
