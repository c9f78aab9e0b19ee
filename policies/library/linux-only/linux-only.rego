# METADATA
# title: Linux only
# description: >-
#   For Windows several checks of the Pod Security Standards do not hold, and no sandboxed runtime exists.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/#os-specific-policy-controls
# custom:
#   id: linux-only
#   code: SBX-005
#   category: isolation
#   severity: high
#   enforcement: Warn
#   remediation: Remove os, windowsOptions and the node selector, or set the operating system to linux.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.2.11"]
package policies.library.linux_only

import data.lib.affinity
import data.lib.containers
import data.lib.pods

deny contains finding if {
	value := pods.spec.os.name
	not value in {null, "linux"}
	finding := {
		"message": "the operating system is another than Linux",
		"field": pods.field("os.name"),
		"value": value,
	}
}

deny contains finding if {
	some key, value in pods.spec.nodeSelector
	key in {"beta.kubernetes.io/os", "kubernetes.io/os"}
	value != "linux"
	finding := {
		"message": "the Sandbox asks for nodes of another operating system than Linux",
		"field": sprintf("%s[%s]", [pods.field("nodeSelector"), key]),
		"value": value,
	}
}

deny contains finding if {
	some path, term in affinity.node_terms
	some index, requirement in term.matchExpressions
	requirement.key in {"beta.kubernetes.io/os", "kubernetes.io/os"}
	not linux(requirement)
	finding := {
		"message": "the Sandbox asks for nodes of another operating system than Linux",
		"field": sprintf("%s.matchExpressions[%v]", [path, index]),
		"value": requirement,
	}
}

linux(requirement) if {
	requirement.operator == "In"
	every name in requirement.values {
		name == "linux"
	}
}

linux(requirement) if requirement.operator == "Exists"

linux(requirement) if {
	requirement.operator == "NotIn"
	not "linux" in requirement.values
}

deny contains finding if {
	some path, owner in containers.owners
	options := owner.securityContext.windowsOptions
	not options in [null, {}]
	finding := {
		"message": "options of Windows are set",
		"field": sprintf("%s.securityContext.windowsOptions", [path]),
		"value": options,
	}
}
