# METADATA
# title: Whole volumes are mounted
# description: >-
#   The kubelet resolves the path of a part of a volume on the node, where links and variables have led out of the
#   volume more than once.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath
# custom:
#   id: subpath
#   code: SBX-029
#   category: storage
#   severity: low
#   enforcement: "Off"
#   remediation: Mount the volume as a whole, or a part of it by a fixed path.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["NSA:C-0058"]
#   parameters:
#     any:
#       description: Whether every part of a volume is a finding, not only one that climbs or is made of variables.
#       type: boolean
#       default: false
package policies.library.subpath

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	some index, mount in container.volumeMounts
	some name in ["subPath", "subPathExpr"]
	written := mount[name]
	not written in {null, ""}
	fault := wrong(values.text(written), name)
	finding := {
		"message": sprintf("%s %s", [containers.label(container), fault]),
		"field": sprintf("%s.volumeMounts[%v].%s", [path, index, name]),
		"value": written,
	}
}

wrong(written, name) := "mounts a path that climbs" if {
	".." in split(written, "/")
} else := "mounts a path made of variables" if {
	name == "subPathExpr"
	contains(written, "$(")
} else := "mounts a part of a volume" if {
	input.parameters.any == true
}
