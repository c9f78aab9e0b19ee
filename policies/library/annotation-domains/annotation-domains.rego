# METADATA
# title: Annotations of known domains
# description: >-
#   Annotations of a Pod steer networks, meshes and secret injectors of the cluster, those of a volume claim what
#   makes its volume. Only those of known domains pass, written before a slash or backwards as in
#   org.example.key; a plain word steers nothing.
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
import data.lib.volumes

deny contains finding if {
	some mappings in [labels.annotations_of_pods, volumes.claim_annotations]
	some path, annotations in mappings
	some key, value in annotations
	unknown := unknown_of(key)
	finding := {
		"message": sprintf("annotations of %s are not allowed", [unknown]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": unknown,
		"content": value,
	}
}

unknown_of(key) := domain if {
	domain := labels.domain(key)
	domain != ""
	not known(domain)
}

# Runtimes and others take keys that begin with their domain, the last part first.
unknown_of(key) := concat(".", array.slice(parts, 0, 2)) if {
	labels.domain(key) == ""
	parts := split(key, ".")
	count(parts) > 1
	not known(concat(".", array.reverse(parts)))
}

known(domain) if {
	some allowed in input.parameters.allowedDomains
	labels.below(domain, allowed)
}
