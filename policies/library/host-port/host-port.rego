# METADATA
# title: No ports of the node
# description: >-
#   A hostPort opens a port on the node's own address, past the router and every NetworkPolicy, and
#   keeps other Sandboxes with that port off the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: host-port
#   code: SBX-024
#   category: network
#   severity: high
#   enforcement: Deny
#   floor: true
#   remediation: Remove hostPort; set spec.service to true to reach the Sandbox by name.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:hostPorts", "CIS 5.2.13", "NSA:C-0044"]
package policies.library.host_port

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	value := container.ports[index].hostPort
	not value in {null, 0}
	finding := {
		"message": sprintf("%s opens a port of the node", [containers.label(container)]),
		"field": sprintf("%s.ports[%v].hostPort", [path, index]),
		"value": value,
		"content": opened(container.ports[index]),
	}
}

# On its loopback only the node itself is let in.
opened(port) := {protocol(port)} if {
	port.hostIP in {"127.0.0.1", "::1"}
} else := {protocol(port), values.given_or(port, ["hostIP"], "")}

protocol(port) := values.given_or(port, ["protocol"], "TCP")
