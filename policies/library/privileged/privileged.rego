# METADATA
# title: No privileged containers
# description: >-
#   A privileged container has all devices and capabilities of the node: it is the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: privileged
#   code: SBX-012
#   category: isolation
#   severity: critical
#   enforcement: Deny
#   floor: true
#   remediation: Remove securityContext.privileged or set it to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:privileged", "CIS 5.2.2", "NSA:C-0057"]
package policies.library.privileged

import data.lib.containers

deny contains finding if {
	some path, container in containers.by_path
	value := container.securityContext.privileged
	not value in {null, false}
	finding := {
		"message": sprintf("%s runs privileged", [containers.label(container)]),
		"field": sprintf("%s.securityContext.privileged", [path]),
		"value": value,
	}
}
