# METADATA
# title: System calls are filtered
# description: >-
#   A container without a seccomp profile reaches every system call of the kernel.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: seccomp
#   code: SBX-015
#   category: isolation
#   severity: medium
#   enforcement: "Off"
#   remediation: Set securityContext.seccompProfile.type to RuntimeDefault.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:seccompProfile_restricted", "CIS 5.7.2", "NSA:C-0055"]
#   parameters:
#     allowedLocalhost:
#       description: Profiles of the node that may be used.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.seccomp

import data.lib.containers
import data.lib.pods
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	profile := effective(container)
	not filters(profile)
	finding := {
		"message": sprintf("%s has no seccomp profile of the runtime", [containers.label(container)]),
		"field": sprintf("%s.securityContext.seccompProfile", [path]),
		"value": profile,
	}
}

# What the container says counts, and what the Pod says where it is silent.
effective(container) := value if {
	value := container.securityContext.seccompProfile
	value != null
} else := of_pod

of_pod := values.given_or(pods.spec, ["securityContext", "seccompProfile"], "")

filters(profile) if profile.type == "RuntimeDefault"

filters(profile) if {
	profile.type == "Localhost"
	profile.localhostProfile in values.collection_at(input.parameters, ["allowedLocalhost"])
}
