# METADATA
# title: Images by digest
# description: >-
#   A tag can be pointed to another image; a digest names one image for ever.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: digest-pinned
#   code: SBX-041
#   category: images
#   severity: low
#   enforcement: "Off"
#   remediation: Name the digest (image@sha256:...).
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["C-0304", "C-0306", "OWASP LLM03"]
#   parameters:
#     exemptRegistries:
#       description: Registries and repositories whose tags do not move.
#       type: array
#       items: {type: string, pattern: "^[^@\\s]+$"}
#       default: []
package policies.library.digest_pinned

import data.lib.images
import data.lib.values

deny contains finding if {
	some path, reference in images.parsed
	reference.digest == ""
	not exempt(reference)
	finding := {
		"message": sprintf("image %q has no digest", [images.by_path[path]]),
		"field": path,
		"value": images.by_path[path],
	}
}

exempt(reference) if {
	some entry in values.collection_at(input.parameters, ["exemptRegistries"])
	images.within(reference.repository, images.listed(entry))
}
