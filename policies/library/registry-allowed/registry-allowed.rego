# METADATA
# title: Images from allowed registries
# description: >-
#   Images come only from the listed registries and repositories. References are compared as the
#   container runtime reads them and segment by segment: docker.io/team does not allow
#   docker.io/teamwork, nor registry.example.com the host registry.example.com.evil.com.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: registry-allowed
#   code: SBX-040
#   category: images
#   severity: high
#   enforcement: "Off"
#   remediation: Use an image of an allowed registry or repository, or ask the platform team to allow this one.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.5.1", "C-0304", "OWASP LLM03"]
#   at_least_one: [registries, repositories]
#   parameters:
#     registries:
#       description: Hosts, with their port if any, from which every image is allowed.
#       type: array
#       items: {type: string, pattern: "^[^/@\\s]+$"}
#       default: []
#     repositories:
#       description: Repositories with their registry; they and all below them are allowed.
#       type: array
#       items: {type: string, pattern: "^[^/@\\s]+/[^@\\s]+$"}
#       default: []
package policies.library.registry_allowed

import data.lib.images
import data.lib.values

deny contains finding if {
	some path, reference in images.parsed
	not allowed(reference)
	written := images.by_path[path]
	finding := {
		"message": sprintf("image %q is not from an allowed registry; allowed are %s", [values.text(written), allowed_text]),
		"field": path,
		"value": written,
	}
}

registries := {images.listed(entry) | some entry in values.collection_at(input.parameters, ["registries"])}

repositories := {images.listed(entry) | some entry in values.collection_at(input.parameters, ["repositories"])}

allowed(reference) if reference.registry in registries

allowed(reference) if {
	some prefix in repositories
	images.within(reference.repository, prefix)
}

allowed_text := text if {
	text := concat(", ", registries | repositories)
	text != ""
} else := "none"
