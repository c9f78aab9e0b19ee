# METADATA
# title: No volumes of other Sandboxes
# description: >-
#   A claim that is not made from the volumeClaimTemplates of the Sandbox holds the files of another one
#   in the namespace.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
# custom:
#   id: foreign-pvc
#   code: SBX-078
#   category: storage
#   severity: medium
#   enforcement: Warn
#   remediation: Use volumeClaimTemplates, or a claim that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM02"]
#   parameters:
#     allowedNames:
#       description: Names of claims that every Sandbox may mount.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.foreign_pvc

import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	source := volume.persistentVolumeClaim
	source != null
	name := values.given_or(source, ["claimName"], "")
	not own(name)
	not allowed(name)
	finding := {
		"message": sprintf("%s mounts a claim that is not the Sandbox's own", [volumes.label(volume)]),
		"field": sprintf("%s.persistentVolumeClaim.claimName", [path]),
		"value": name,
		"content": volumes.opened(volume, source),
	}
}

own(name) if {
	input.kind == "Sandbox"
	some template in input.object.spec.volumeClaimTemplates
	name == sprintf("%s-%s", [template.metadata.name, input.object.metadata.name])
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.allowedNames
