# METADATA
# title: No way to more privileges
# description: >-
#   Unless it is turned off, a process can gain privileges that its parent did not have, by setuid files
#   for example.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: no-privilege-escalation
#   code: SBX-011
#   category: isolation
#   severity: medium
#   enforcement: "Off"
#   remediation: Set securityContext.allowPrivilegeEscalation to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:allowPrivilegeEscalation", "CIS 5.2.6", "NSA:C-0016"]
package policies.library.no_privilege_escalation

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	not container.securityContext.allowPrivilegeEscalation == false
	finding := {
		"message": sprintf("%s may gain privileges", [containers.label(container)]),
		"field": sprintf("%s.securityContext.allowPrivilegeEscalation", [path]),
		"value": values.given_or(container, ["securityContext", "allowPrivilegeEscalation"], ""),
	}
}
