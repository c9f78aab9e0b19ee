# METADATA
# title: Images that were verified
# description: >-
#   An image runs only if its digest is on a list that your pipeline writes: of what it built, signed or scanned.
#   Nothing is fetched while an object is admitted.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: verified-digest
#   code: SBX-045
#   category: images
#   severity: high
#   enforcement: "Off"
#   remediation: Name an image of the list by its digest (image@sha256:...), or have this one verified.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.5.1", "C-0306", "OWASP LLM03"]
#   at_least_one: [digests]
#   parameters:
#     digests:
#       description: What was verified, by digest, for example by whom and when.
#       type: object
#       propertyNames: {pattern: "^sha(256:[0-9a-f]{64}|384:[0-9a-f]{96}|512:[0-9a-f]{128})$"}
#       additionalProperties: {type: string}
#       default: {}
package policies.library.verified_digest

import data.lib.images
import data.lib.values

deny contains finding if {
	some path, reference in images.parsed
	not verified(reference)
	written := images.by_path[path]
	finding := {
		"message": sprintf("image %q is not one of the verified digests", [values.text(written)]),
		"field": path,
		"value": written,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
verified(reference) if input.parameters.digests[reference.digest]
