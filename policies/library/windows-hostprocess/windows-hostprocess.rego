# METADATA
# title: No Windows containers of the host
# description: >-
#   A HostProcess container is a process of the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: windows-hostprocess
#   code: SBX-023
#   category: isolation
#   severity: critical
#   enforcement: Deny
#   remediation: Remove windowsOptions.hostProcess or set it to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:windowsHostProcess", "CIS 5.2.11"]
package policies.library.windows_hostprocess

import data.lib.containers

deny contains finding if {
	some path, owner in containers.owners
	value := owner.securityContext.windowsOptions.hostProcess
	not value in {null, false}
	finding := {
		"message": "a HostProcess container is a process of the node",
		"field": sprintf("%s.securityContext.windowsOptions.hostProcess", [path]),
		"value": value,
	}
}
