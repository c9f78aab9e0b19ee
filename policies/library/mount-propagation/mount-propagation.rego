# METADATA
# title: Mounts stay in the container
# description: >-
#   With Bidirectional propagation what a container mounts appears on the node; with HostToContainer what the node
#   mounts later appears in the container, which is told only.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/#mount-propagation
# custom:
#   id: mount-propagation
#   code: SBX-028
#   category: isolation
#   severity: high
#   enforcement: Warn
#   remediation: Remove mountPropagation or set it to None.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
package policies.library.mount_propagation

import data.lib.containers

deny contains finding if {
	some path, container in containers.by_path
	value := container.volumeMounts[index].mountPropagation
	not value in {null, "", "None", "HostToContainer"}
	finding := {
		"message": sprintf("what %s mounts appears on the node", [containers.label(container)]),
		"field": sprintf("%s.volumeMounts[%v].mountPropagation", [path, index]),
		"value": value,
	}
}

warn contains finding if {
	some path, container in containers.by_path
	container.volumeMounts[index].mountPropagation == "HostToContainer"
	finding := {
		"message": sprintf("what the node mounts later appears in %s", [containers.label(container)]),
		"field": sprintf("%s.volumeMounts[%v].mountPropagation", [path, index]),
		"value": "HostToContainer",
	}
}
