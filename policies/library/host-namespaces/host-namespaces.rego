# METADATA
# title: No namespaces of the node
# description: >-
#   With the network, process or IPC namespace of the node a Sandbox sees and reaches what belongs to
#   the node and to other tenants, and no NetworkPolicy applies to it.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: host-namespaces
#   code: SBX-010
#   category: isolation
#   severity: critical
#   enforcement: Deny
#   floor: true
#   remediation: Remove the field or set it to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:hostNamespaces", "CIS 5.2.3", "CIS 5.2.4", "CIS 5.2.5", "NSA:C-0038", "NSA:C-0041"]
package policies.library.host_namespaces

import data.lib.pods

deny contains finding if {
	spec := pods.spec
	some name in ["hostNetwork", "hostPID", "hostIPC"]
	value := spec[name]
	not value in {null, false}
	finding := {
		"message": sprintf("the Sandbox joins the %s namespace of the node", [namespaces[name]]),
		"field": pods.field(name),
		"value": value,
	}
}

namespaces := {
	"hostNetwork": "network",
	"hostPID": "process",
	"hostIPC": "IPC",
}
