# METADATA
# title: No hostPath volumes
# description: A hostPath volume gives a Sandbox files of the node, and through them the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: hostpath
#   code: SBX-070
#   category: storage
#   severity: critical
#   enforcement: Deny
#   floor: true
#   remediation: Use an emptyDir, or volumeClaimTemplates for files that must outlive the Pod.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:hostPathVolumes", "CIS 5.2.12", "NSA:C-0048"]
package policies.library.hostpath

import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	source := volume.hostPath
	source != null
	finding := {
		"message": sprintf("%s mounts a path of the node", [volumes.label(volume)]),
		"field": sprintf("%s.hostPath", [path]),
		"value": values.given_or(source, ["path"], source),
		"content": volumes.opened(volume, source),
	}
}
