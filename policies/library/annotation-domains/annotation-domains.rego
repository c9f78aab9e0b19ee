# METADATA
# title: Annotations of known domains
# description: >-
#   Annotations of a Pod steer networks, meshes and secret injectors of the cluster. Only those of known
#   domains pass; a key without a domain steers nothing.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/
# custom:
#   id: annotation-domains
#   code: SBX-095
#   category: metadata
#   severity: high
#   enforcement: Warn
#   remediation: Remove the annotation, or ask the platform team to allow its domain.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowedDomains:
#       description: Domains whose annotations may be set; those below them too.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [agents.x-k8s.io, kubernetes.io, opentelemetry.io, prometheus.io]
package policies.library.annotation_domains

import data.lib.labels

deny contains finding if {
	some path, annotations in labels.annotations_of_pods
	some key, value in annotations
	domain := labels.domain(key)
	domain != ""
	not known(domain)
	finding := {
		"message": sprintf("annotations of %s are not allowed", [domain]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": domain,
		"content": value,
	}
}

known(domain) if {
	some allowed in input.parameters.allowedDomains
	labels.below(domain, allowed)
}
