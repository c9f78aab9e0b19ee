# METADATA
# title: Reviewed fields only
# description: >-
#   A field that the next release of Kubernetes brings may touch the node, and no rule looks at it yet. The API server
#   drops fields that it does not know, so this is for the command, and for servers that are newer than the rules.
# related_resources:
#   - ref: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
# custom:
#   id: unknown-fields
#   code: SBX-090
#   category: metadata
#   severity: medium
#   enforcement: "Off"
#   remediation: Remove the field, or ask the platform team to review it and to add it to extraAllowed.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     extraAllowed:
#       description: More fields that were reviewed, by their name in the Pod, the container or the security context.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.unknown_fields

import data.lib.containers
import data.lib.pods

deny contains finding if {
	some name in (object.keys(pods.spec) - of_pods)
	pods.spec[name] != null
	finding := found(pods.field(name), name, pods.spec[name])
}

deny contains finding if {
	some name, value in pods.spec.securityContext
	value != null
	not name in of_pod_contexts
	finding := found(pods.field(sprintf("securityContext.%s", [name])), name, value)
}

deny contains finding if {
	some path, container in containers.by_path
	some name in (object.keys(container) - of_containers)
	container[name] != null
	finding := found(sprintf("%s.%s", [path, name]), name, container[name])
}

deny contains finding if {
	some path, container in containers.by_path
	is_object(container.securityContext)
	some name in (object.keys(container.securityContext) - of_contexts)
	container.securityContext[name] != null
	finding := found(sprintf("%s.securityContext.%s", [path, name]), name, container.securityContext[name])
}

# A field that is allowed has no finding: the function is undefined for it.
found(field, name, content) := {
	"message": sprintf("nobody has reviewed the field %s", [name]),
	"field": field,
	"value": name,
	"content": content,
} if {
	not allowed(name)
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.extraAllowed

# The fields that were reviewed; a test compares them with the types of Kubernetes.
of_contexts := {
	"allowPrivilegeEscalation",
	"appArmorProfile",
	"capabilities",
	"privileged",
	"procMount",
	"readOnlyRootFilesystem",
	"runAsGroup",
	"runAsNonRoot",
	"runAsUser",
	"seLinuxOptions",
	"seccompProfile",
	"windowsOptions",
}

of_pod_contexts := {
	"appArmorProfile",
	"fsGroup",
	"fsGroupChangePolicy",
	"runAsGroup",
	"runAsNonRoot",
	"runAsUser",
	"seLinuxChangePolicy",
	"seLinuxOptions",
	"seccompProfile",
	"supplementalGroups",
	"supplementalGroupsPolicy",
	"sysctls",
	"windowsOptions",
}

of_pods := {
	"activeDeadlineSeconds",
	"affinity",
	"automountServiceAccountToken",
	"containers",
	"dnsConfig",
	"dnsPolicy",
	"enableServiceLinks",
	"ephemeralContainers",
	"evictionResponders",
	"hostAliases",
	"hostIPC",
	"hostNetwork",
	"hostPID",
	"hostUsers",
	"hostname",
	"hostnameOverride",
	"imagePullSecrets",
	"initContainers",
	"nodeName",
	"nodeSelector",
	"os",
	"overhead",
	"preemptionPolicy",
	"priority",
	"priorityClassName",
	"readinessGates",
	"resourceClaims",
	"resources",
	"restartPolicy",
	"runtimeClassName",
	"schedulerName",
	"schedulingGates",
	"schedulingGroup",
	"securityContext",
	"serviceAccount",
	"serviceAccountName",
	"setHostnameAsFQDN",
	"shareProcessNamespace",
	"subdomain",
	"terminationGracePeriodSeconds",
	"tolerations",
	"topologySpreadConstraints",
	"volumes",
}

of_containers := {
	"args",
	"command",
	"env",
	"envFrom",
	"image",
	"imagePullPolicy",
	"lifecycle",
	"livenessProbe",
	"name",
	"ports",
	"readinessProbe",
	"resizePolicy",
	"resources",
	"restartPolicy",
	"restartPolicyRules",
	"securityContext",
	"startupProbe",
	"stdin",
	"stdinOnce",
	"targetContainerName",
	"terminationMessagePath",
	"terminationMessagePolicy",
	"tty",
	"volumeDevices",
	"volumeMounts",
	"workingDir",
}
