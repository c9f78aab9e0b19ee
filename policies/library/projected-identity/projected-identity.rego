# METADATA
# title: No projected identities
# description: >-
#   A projected token, certificate or trust bundle is an identity like the one that automount-token keeps
#   away. Tokens for listed audiences only may be allowed, with a bound on their lifetime.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/projected-volumes/
# custom:
#   id: projected-identity
#   code: SBX-032
#   category: identity
#   severity: high
#   enforcement: Deny
#   floor: true
#   remediation: Remove the source from the projected volume.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.1.6", "OWASP LLM06"]
#   parameters:
#     allowedAudiences:
#       description: Audiences for which a ServiceAccount token may be projected.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     maxExpirationSeconds:
#       description: The longest lifetime of such a token, in seconds; Kubernetes gives one hour when none is set.
#       type: integer
#       minimum: 600
#       default: 3600
package policies.library.projected_identity

import data.lib.values
import data.lib.volumes

identities := {"clusterTrustBundle", "podCertificate", "serviceAccountToken"}

deny contains finding if {
	some path, volume in volumes.by_path
	some index, source in volume.projected.sources
	some kind in identities
	identity := source[kind]
	identity != null
	not allowed(kind, identity)
	finding := {
		"message": sprintf("%s projects a %s", [volumes.label(volume), kind]),
		"field": sprintf("%s.projected.sources[%v].%s", [path, index, kind]),
		"value": json.marshal(identity),
		"content": volumes.opened(volume, identity),
	}
}

allowed("serviceAccountToken", token) if {
	values.given(token, ["audience"]) in values.collection_at(input.parameters, ["allowedAudiences"])
	lifetime := values.given_or(token, ["expirationSeconds"], 3600)
	is_number(lifetime)
	lifetime <= longest_lifetime
}

default longest_lifetime := 3600

longest_lifetime := values.given(input.parameters, ["maxExpirationSeconds"])
