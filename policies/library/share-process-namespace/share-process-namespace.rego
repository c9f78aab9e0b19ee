# METADATA
# title: Separate processes for each container
# description: >-
#   With a shared process namespace every container of the Sandbox reads the environment and the files of
#   the others, those of a sidecar with secrets included.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/share-process-namespace/
# custom:
#   id: share-process-namespace
#   code: SBX-026
#   category: isolation
#   severity: low
#   enforcement: Warn
#   remediation: Remove shareProcessNamespace or set it to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
package policies.library.share_process_namespace

import data.lib.pods

deny contains finding if {
	value := pods.spec.shareProcessNamespace
	not value in {null, false}
	finding := {
		"message": "the containers see each other's processes",
		"field": pods.field("shareProcessNamespace"),
		"value": value,
	}
}
