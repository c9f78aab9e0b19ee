# METADATA
# title: No volumes of others
# description: >-
#   A claim for storage that names its volume, selects one, or copies from a source can bind or clone what
#   belongs to another tenant. Annotations that Kubernetes writes on claims as it binds them choose a volume or
#   its node as well.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
# custom:
#   id: volume-binding
#   code: SBX-077
#   category: storage
#   severity: high
#   enforcement: Deny
#   remediation: Remove the field or annotation; the storage class then makes a new, empty volume.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM02"]
package policies.library.volume_binding

import data.lib.labels
import data.lib.volumes

deny contains finding if {
	some path, spec in volumes.claims
	some field in ["dataSource", "dataSourceRef", "selector", "volumeAttributesClassName", "volumeName"]
	value := spec[field]
	not value in {null, ""}
	finding := {
		"message": sprintf("the volume claim chooses its volume by %s", [field]),
		"field": sprintf("%s.%s", [path, field]),
		"value": value,
	}
}

deny contains finding if {
	some path, annotations in volumes.claim_annotations
	some key, value in annotations
	labels.domain(key) in {"pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io"}
	key != volumes.class_annotation
	finding := {
		"message": sprintf("the volume claim chooses its volume by the annotation %s", [key]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}
