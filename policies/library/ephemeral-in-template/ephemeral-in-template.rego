# METADATA
# title: No ephemeral containers in a template
# description: >-
#   Kubernetes refuses ephemeral containers when a Pod is made, but the schema of a Sandbox has the field,
#   and not every check looks there.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/
# custom:
#   id: ephemeral-in-template
#   code: SBX-027
#   category: isolation
#   severity: medium
#   enforcement: Deny
#   floor: true
#   remediation: Move the container to containers or initContainers.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
package policies.library.ephemeral_in_template

import data.lib.pods
import data.lib.values

deny contains finding if {
	value := pods.spec.ephemeralContainers
	not value in [null, []]
	finding := {
		"message": "a Pod cannot start with ephemeral containers",
		"field": pods.field("ephemeralContainers"),
		"value": concat(", ", {values.string_at(container, ["name"]) | some container in value}),
		"content": {container | some container in value},
	}
}
