# METADATA
# title: One source for each volume
# description: >-
#   A volume with two sources is not possible in a Pod, yet a custom resource can carry one, and checks
#   that look at the first source only miss the second.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/
# custom:
#   id: one-volume-source
#   code: SBX-071
#   category: storage
#   severity: high
#   enforcement: Deny
#   remediation: "Give the volume exactly one source, for example emptyDir: {}."
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:restrictedVolumes"]
package policies.library.one_volume_source

import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	sources := volumes.sources(volume)
	count(sources) != 1
	finding := {
		"message": sprintf("%s has %d sources", [volumes.label(volume), count(sources)]),
		"field": path,
		"value": concat(", ", sources),
		"content": volume,
	}
}
