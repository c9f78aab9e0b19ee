# METADATA
# title: No annotations for the runtime
# description: >-
#   Annotations for gVisor, Kata, runc, crun, containerd and CRI-O weaken the isolation from within the manifest.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/
# custom:
#   id: runtime-annotations
#   code: SBX-004
#   category: isolation
#   severity: critical
#   enforcement: Warn
#   remediation: Remove the annotation.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowed:
#       description: Annotations that may be set all the same; a * stands for what is between two dots.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.runtime_annotations

import data.lib.labels

deny contains finding if {
	some path, annotations in labels.annotations_of_pods
	some key, value in annotations
	steers(key)
	not allowed(key)
	finding := {
		"message": sprintf("the annotation %s steers the container runtime", [key]),
		"field": sprintf("%s[%s]", [path, key]),
		"value": value,
	}
}

steers(key) if {
	some prefix in [
		"dev.gvisor.", "io.katacontainers.", "io.kubernetes.cri-o.", "io.kubernetes.cri.", "io.containerd.",
		"org.systemd.property.", "run.oci.", "krun.",
	]
	startswith(key, prefix)
}

# CRI-O's own, for a Pod as a whole or, after a slash, for one of its containers.
steers(key) if {
	some domain in ["crio.io", "cri-o.io"]
	labels.below(split(key, "/")[0], domain)
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(key) if {
	some pattern in input.parameters.allowed
	glob.match(pattern, [], key)
}
