# METADATA
# title: Readable image references
# description: >-
#   An image reference that the container runtime cannot read fails late, and look-alike letters or
#   spaces in it are a way around lists of allowed images.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/containers/images/
# custom:
#   id: image-malformed
#   code: SBX-043
#   category: images
#   severity: medium
#   enforcement: Deny
#   remediation: Write the image as [registry/]repository[:tag][@digest] in lower case.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM03"]
package policies.library.image_malformed

import data.lib.images
import data.lib.values

deny contains finding if {
	some path, reference in images.parsed
	fault := reference.error
	written := images.by_path[path]
	finding := {
		"message": sprintf("image %q %s", [values.text(written), fault]),
		"field": path,
		"value": written,
	}
}
