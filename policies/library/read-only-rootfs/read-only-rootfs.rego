# METADATA
# title: The root file system stays as it is
# description: >-
#   Code that can write to the root file system of its container can change the programs that run there. Many images
#   for agents need it writable, so the rule is for those that do not.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
# custom:
#   id: read-only-rootfs
#   code: SBX-022
#   category: isolation
#   severity: low
#   enforcement: "Off"
#   remediation: Set securityContext.readOnlyRootFilesystem to true and mount an emptyDir where files are written.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["NSA:C-0017"]
#   parameters:
#     exemptImages:
#       description: Registries and repositories whose images need it writable; all below them too.
#       type: array
#       items: {type: string, pattern: "^[^@\\s]+$"}
#       default: []
package policies.library.read_only_rootfs

import data.lib.containers
import data.lib.images
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	not container.securityContext.readOnlyRootFilesystem == true
	not exempt(path)
	finding := {
		"message": sprintf("%s can write to its root file system", [containers.label(container)]),
		"field": sprintf("%s.securityContext.readOnlyRootFilesystem", [path]),
		"value": values.given_or(container, ["securityContext", "readOnlyRootFilesystem"], ""),
	}
}

exempt(path) if {
	some entry in input.parameters.exemptImages
	images.within(images.parsed[sprintf("%s.image", [path])].repository, images.listed(entry))
}
