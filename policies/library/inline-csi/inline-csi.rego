# METADATA
# title: CSI drivers from a list
# description: >-
#   A driver that is used inline runs for the tenant with what rights it has on the node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/
# custom:
#   id: inline-csi
#   code: SBX-073
#   category: storage
#   severity: high
#   enforcement: Warn
#   remediation: Use a persistent volume claim, or a driver that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedDrivers:
#       description: Drivers that may be used inline.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.inline_csi

import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	source := volume.csi
	source != null
	driver := values.given_or(source, ["driver"], "")
	not allowed(driver)
	finding := {
		"message": sprintf("%s uses the CSI driver %q", [volumes.label(volume), values.text(driver)]),
		"field": sprintf("%s.csi.driver", [path]),
		"value": driver,
		"content": volumes.opened(volume, source),
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(driver) if driver in input.parameters.allowedDrivers
