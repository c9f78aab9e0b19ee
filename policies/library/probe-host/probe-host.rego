# METADATA
# title: Probes stay within the Pod
# description: >-
#   A probe or hook with a host makes the kubelet send requests for the tenant, from the network of the
#   node.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/pod-security-standards/
# custom:
#   id: probe-host
#   code: SBX-025
#   category: network
#   severity: high
#   enforcement: Deny
#   remediation: Remove host; the Pod itself is probed then.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["PSS:hostProbesAndHostLifecycle"]
package policies.library.probe_host

import data.lib.containers

deny contains finding if {
	some path, container in containers.by_path
	some name in ["livenessProbe", "readinessProbe", "startupProbe"]
	some handler in ["httpGet", "tcpSocket"]
	value := container[name][handler].host
	not value in {null, ""}
	finding := found(sprintf("%s.%s.%s.host", [path, name, handler]), container, container[name][handler])
}

deny contains finding if {
	some path, container in containers.by_path
	some name in ["postStart", "preStop"]
	some handler in ["httpGet", "tcpSocket"]
	value := container.lifecycle[name][handler].host
	not value in {null, ""}
	finding := found(sprintf("%s.lifecycle.%s.%s.host", [path, name, handler]), container, container.lifecycle[name][handler])
}

found(field, container, called) := {
	"message": sprintf("%s has the kubelet call another host", [containers.label(container)]),
	"field": field,
	"value": called.host,
	"content": called,
}
