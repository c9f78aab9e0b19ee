# METADATA
# title: Tags are pulled again
# description: >-
#   A node keeps what it pulled. With a tag and without Always, a Sandbox may run an old image, or one
#   of another tenant that it has no right to pull.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: pull-policy
#   code: SBX-044
#   category: images
#   severity: low
#   enforcement: "Off"
#   remediation: Set imagePullPolicy to Always, or name a digest.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM03"]
package policies.library.pull_policy

import data.lib.containers
import data.lib.images
import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, container in containers.by_path
	reference := images.parsed[sprintf("%s.image", [path])]
	reference.digest == ""
	policy := effective(values.given_or(container, ["imagePullPolicy"], ""), reference)
	policy != "Always"
	finding := {
		"message": sprintf("%s may run an image that the node kept", [containers.label(container)]),
		"field": sprintf("%s.imagePullPolicy", [path]),
		"value": policy,
		"content": reference,
	}
}

deny contains finding if {
	some path, volume in volumes.by_path
	source := volume.image
	reference := images.parsed[sprintf("%s.image.reference", [path])]
	reference.digest == ""
	policy := effective(values.given_or(source, ["pullPolicy"], ""), reference)
	policy != "Always"
	finding := {
		"message": sprintf("%s may hold an image that the node kept", [volumes.label(volume)]),
		"field": sprintf("%s.image.pullPolicy", [path]),
		"value": policy,
		"content": reference,
	}
}

# Kubernetes pulls always what has no tag or the tag latest, unless something else is written.
effective(written, reference) := written if {
	written != ""
} else := "Always" if {
	reference.tag in {"", "latest"}
} else := "IfNotPresent"
