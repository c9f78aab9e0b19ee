# METADATA
# title: Kernel parameters from a list
# description: >-
#   Only kernel parameters that are confined to the Pod may be set.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/
# custom:
#   id: sysctls
#   code: SBX-019
#   category: isolation
#   severity: high
#   enforcement: Deny
#   remediation: Remove the sysctl.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:sysctls"]
#   parameters:
#     allowed:
#       description: Names of sysctls that may be set.
#       type: array
#       items: {type: string, minLength: 1}
#       default:
#         - kernel.shm_rmid_forced
#         - net.ipv4.ip_local_port_range
#         - net.ipv4.ip_local_reserved_ports
#         - net.ipv4.ip_unprivileged_port_start
#         - net.ipv4.ping_group_range
#         - net.ipv4.tcp_fin_timeout
#         - net.ipv4.tcp_keepalive_intvl
#         - net.ipv4.tcp_keepalive_probes
#         - net.ipv4.tcp_keepalive_time
#         - net.ipv4.tcp_notsent_lowat
#         - net.ipv4.tcp_rmem
#         - net.ipv4.tcp_slow_start_after_idle
#         - net.ipv4.tcp_syncookies
#         - net.ipv4.tcp_wmem
package policies.library.sysctls

import data.lib.pods

deny contains finding if {
	some index, sysctl in pods.spec.securityContext.sysctls
	not allowed(sysctl)
	finding := {
		"message": "the sysctl is not on the list of those that are confined to a Pod",
		"field": sprintf("%s.securityContext.sysctls[%v].name", [pods.field_prefix, index]),
		"value": sysctl,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(sysctl) if sysctl.name in input.parameters.allowed
