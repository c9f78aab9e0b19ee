# METADATA
# title: All capabilities are dropped
# description: >-
#   A container keeps a set of Linux capabilities unless it drops them; most programs need none. The
#   name counts as written, ALL.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: capabilities-drop-all
#   code: SBX-014
#   category: isolation
#   severity: medium
#   enforcement: "Off"
#   remediation: Set securityContext.capabilities.drop to [ALL].
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:capabilities_restricted", "CIS 5.2.10"]
package policies.library.capabilities_drop_all

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	not drops_all(container)
	finding := {
		"message": sprintf("%s keeps capabilities", [containers.label(container)]),
		"field": sprintf("%s.securityContext.capabilities.drop", [path]),
		"value": values.given_or(container, ["securityContext", "capabilities", "drop"], ""),
	}
}

drops_all(container) if "ALL" in container.securityContext.capabilities.drop
