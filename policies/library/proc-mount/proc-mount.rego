# METADATA
# title: The proc file system stays masked
# description: >-
#   Another procMount than Default shows a container what the runtime hides of the kernel.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: proc-mount
#   code: SBX-018
#   category: isolation
#   severity: high
#   enforcement: Deny
#   remediation: Remove procMount or set it to Default.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:procMount"]
package policies.library.proc_mount

import data.lib.containers

deny contains finding if {
	some path, container in containers.by_path
	value := container.securityContext.procMount
	not value in {null, "Default"}
	finding := {
		"message": sprintf("%s has proc unmasked", [containers.label(container)]),
		"field": sprintf("%s.securityContext.procMount", [path]),
		"value": value,
	}
}
