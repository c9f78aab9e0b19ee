# METADATA
# title: SELinux labels of containers only
# description: >-
#   A container keeps the SELinux user and role that the runtime gives it, and its type is one of those
#   for containers.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: selinux
#   code: SBX-017
#   category: isolation
#   severity: high
#   enforcement: Deny
#   remediation: Remove user and role; use a type for containers.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:seLinuxOptions"]
#   parameters:
#     allowedTypes:
#       description: Types that may be set.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [container_t, container_init_t, container_kvm_t, container_engine_t]
package policies.library.selinux

import data.lib.containers

deny contains finding if {
	some path, owner in containers.owners
	some name in ["user", "role"]
	value := owner.securityContext.seLinuxOptions[name]
	not value in {null, ""}
	finding := {
		"message": sprintf("the SELinux %s is chosen", [name]),
		"field": sprintf("%s.securityContext.seLinuxOptions.%s", [path, name]),
		"value": value,
	}
}

deny contains finding if {
	some path, owner in containers.owners
	value := owner.securityContext.seLinuxOptions.type
	not value in {null, ""}
	not allowed(value)
	finding := {
		"message": "the SELinux type is not one for containers",
		"field": sprintf("%s.securityContext.seLinuxOptions.type", [path]),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(value) if value in input.parameters.allowedTypes
