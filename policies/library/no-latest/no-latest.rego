# METADATA
# title: No moving image tags
# description: >-
#   An image without a tag, or tagged latest, is another one tomorrow: members of a pool then differ, and
#   what was reviewed is not what runs.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: no-latest
#   code: SBX-042
#   category: images
#   severity: medium
#   enforcement: Warn
#   remediation: Name a version tag, or better a digest (@sha256:...).
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0304"]
#   parameters:
#     tags:
#       description: Tags that count as moving.
#       type: array
#       items: {type: string, minLength: 1}
#       minItems: 1
#       default: [latest]
package policies.library.no_latest

import data.lib.images
import data.lib.values

deny contains finding if {
	some path, reference in images.parsed
	reference.digest == ""
	fault := moving(reference)
	written := images.by_path[path]
	finding := {
		"message": sprintf("image %q %s", [written, fault]),
		"field": path,
		"value": written,
	}
}

moving(reference) := "has neither a tag nor a digest" if reference.tag == ""

moving(reference) := sprintf("has the moving tag %q", [reference.tag]) if {
	reference.tag in moving_tags
}

default moving_tags := ["latest"]

moving_tags := values.given(input.parameters, ["tags"])
