# METADATA
# title: No added capabilities
# description: >-
#   Containers add only Linux capabilities that a container has by default anyway. Names count as
#   written: the CAP_ prefix and lower case are refused, since runtimes read them differently.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: capabilities-add
#   code: SBX-013
#   category: isolation
#   severity: high
#   enforcement: Deny
#   remediation: Remove the capability from securityContext.capabilities.add.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:capabilities_baseline", "CIS 5.2.8", "CIS 5.2.9", "NSA:C-0046"]
#   parameters:
#     allowed:
#       description: Capabilities that may be added.
#       type: array
#       items: {type: string, pattern: "^[A-Z0-9_]+$"}
#       default:
#         - AUDIT_WRITE
#         - CHOWN
#         - DAC_OVERRIDE
#         - FOWNER
#         - FSETID
#         - KILL
#         - MKNOD
#         - NET_BIND_SERVICE
#         - SETFCAP
#         - SETGID
#         - SETPCAP
#         - SETUID
#         - SYS_CHROOT
package policies.library.capabilities_add

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	some index, value in container.securityContext.capabilities.add
	not allowed(value)
	finding := {
		"message": sprintf("%s adds capability %s", [containers.label(container), values.text(value)]),
		"field": sprintf("%s.securityContext.capabilities.add[%v]", [path, index]),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in values.collection_at(input.parameters, ["allowed"])
