# METADATA
# title: Not root
# description: >-
#   A process that is root in its container is one fault of the kernel or runtime away from being root
#   of the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: run-as-non-root
#   code: SBX-020
#   category: isolation
#   severity: medium
#   enforcement: "Off"
#   remediation: Set securityContext.runAsNonRoot to true and use an image that runs as another user.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:runAsNonRoot", "CIS 5.2.7", "NSA:C-0013"]
#   parameters:
#     exemptRuntimeClasses:
#       description: RuntimeClasses whose runtime keeps root of a container from the node.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.run_as_non_root

import data.lib.containers
import data.lib.pods
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	not other_than_root(container)
	not exempt
	finding := {
		"message": sprintf("%s may run as root", [containers.label(container)]),
		"field": sprintf("%s.securityContext.runAsNonRoot", [path]),
		"value": effective(container),
		"content": root(container),
	}
}

# What the container says counts, and what the Pod says where it is silent.
effective(container) := value if {
	value := container.securityContext.runAsNonRoot
	value != null
} else := values.given_or(pods.spec, ["securityContext", "runAsNonRoot"], "")

# Who says so is root for certain.
root(container) := {0} if {
	values.given(container, ["securityContext", "runAsUser"]) == 0
} else := {0} if {
	not values.given(container, ["securityContext", "runAsUser"])
	user_of_pod == 0
} else := set()

user_of_pod := values.given(pods.spec, ["securityContext", "runAsUser"])

other_than_root(container) if effective(container) == true

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
exempt if pods.spec.runtimeClassName in input.parameters.exemptRuntimeClasses
