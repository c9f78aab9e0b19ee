# METADATA
# title: Volumes for one Sandbox
# description: >-
#   A volume that many can write to, or a raw device, is a way from one Sandbox to another.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
# custom:
#   id: access-mode
#   code: SBX-075
#   category: storage
#   severity: high
#   enforcement: Warn
#   remediation: Use ReadWriteOnce or ReadWriteOncePod, and volumeMode Filesystem.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedModes:
#       description: Access modes that may be asked for.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [ReadWriteOnce, ReadWriteOncePod]
package policies.library.access_mode

import data.lib.volumes

deny contains finding if {
	some path, spec in volumes.claims
	some index, mode in spec.accessModes
	not allowed(mode)
	finding := {
		"message": "the access mode is not allowed",
		"field": sprintf("%s.accessModes[%v]", [path, index]),
		"value": mode,
	}
}

deny contains finding if {
	some path, spec in volumes.claims
	value := spec.volumeMode
	not value in {null, "", "Filesystem"}
	finding := {
		"message": "the volume is a raw device",
		"field": sprintf("%s.volumeMode", [path]),
		"value": value,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(mode) if mode in input.parameters.allowedModes
