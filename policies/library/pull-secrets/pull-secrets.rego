# METADATA
# title: Credentials of registries from a list
# description: >-
#   A Sandbox that names credentials pulls all that they open, and names any Secret of its namespace that holds some.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/pull-image-private-registry/
# custom:
#   id: pull-secrets
#   code: SBX-036
#   category: identity
#   severity: low
#   enforcement: "Off"
#   remediation: Remove the entry, or use credentials that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowed:
#       description: Names of Secrets by which images may be pulled.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.pull_secrets

import data.lib.pods
import data.lib.values

deny contains finding if {
	some index, secret in pods.spec.imagePullSecrets
	name := values.given_or(secret, ["name"], "")
	not allowed(name)
	finding := {
		"message": sprintf("images would be pulled by the credentials %q", [values.text(name)]),
		"field": sprintf("%s[%v].name", [pods.field("imagePullSecrets"), index]),
		"value": name,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.allowed
