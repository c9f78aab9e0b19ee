# METADATA
# title: Nodes stay unknown
# description: >-
#   The name and addresses of its node tell code in a Sandbox where to look for the kubelet and the neighbours.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
# custom:
#   id: node-recon
#   code: SBX-079
#   category: isolation
#   severity: low
#   enforcement: "Off"
#   remediation: Remove the reference to the node.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
package policies.library.node_recon

import data.lib.containers
import data.lib.volumes

deny contains finding if {
	some path, container in containers.by_path
	value := container.env[index].valueFrom.fieldRef.fieldPath
	value in of_nodes
	finding := found(sprintf("%s.env[%v].valueFrom.fieldRef.fieldPath", [path, index]), value)
}

deny contains finding if {
	some path, volume in volumes.by_path
	value := volume.downwardAPI.items[index].fieldRef.fieldPath
	value in of_nodes
	finding := found(sprintf("%s.downwardAPI.items[%v].fieldRef.fieldPath", [path, index]), value)
}

deny contains finding if {
	some path, volume in volumes.by_path
	value := volume.projected.sources[i].downwardAPI.items[j].fieldRef.fieldPath
	value in of_nodes
	finding := found(sprintf("%s.projected.sources[%v].downwardAPI.items[%v].fieldRef.fieldPath", [path, i, j]), value)
}

of_nodes := {"spec.nodeName", "status.hostIP", "status.hostIPs"}

found(field, value) := {
	"message": sprintf("the Sandbox is told %s of its node", [value]),
	"field": field,
	"value": value,
}
