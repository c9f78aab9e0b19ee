# METADATA
# title: Volumes of known types
# description: >-
#   Volumes of other types reach networks and nodes by drivers that nobody looked at.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/
# custom:
#   id: volume-types
#   code: SBX-072
#   category: storage
#   severity: high
#   enforcement: Warn
#   remediation: Use a volume of an allowed type.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:restrictedVolumes"]
#   parameters:
#     allowed:
#       description: Types that may be used, as the field is called.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected, secret]
package policies.library.volume_types

import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	some kind, value in volume

	# The rule hostpath refuses those anyway.
	not kind in {"name", "hostPath"}
	value != null
	not allowed(kind)
	finding := {
		"message": sprintf("%s is of the type %s", [volumes.label(volume), kind]),
		"field": sprintf("%s.%s", [path, kind]),
		"value": kind,
		"content": volumes.opened(volume, value),
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(kind) if kind in input.parameters.allowed
