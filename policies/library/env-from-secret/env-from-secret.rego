# METADATA
# title: No secrets in variables
# description: >-
#   The environment of a process is given to all that it starts, and ends up in crash reports and logs. A variable from
#   a file of a volume is no better.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-as-environment-variables
# custom:
#   id: env-from-secret
#   code: SBX-034
#   category: identity
#   severity: medium
#   enforcement: "Off"
#   remediation: Mount the Secret as a file, or use one that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.4.1", "OWASP LLM02"]
#   parameters:
#     allowedNames:
#       description: Names of Secrets whose values may be variables.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     allowFiles:
#       description: Whether a variable may come from a file of a volume.
#       type: boolean
#       default: false
package policies.library.env_from_secret

import data.lib.containers
import data.lib.values

deny contains finding if {
	some path, container in containers.by_path
	reference := container.env[index].valueFrom.secretKeyRef
	finding := of_secret(container, reference, sprintf("%s.env[%v].valueFrom.secretKeyRef", [path, index]))
}

deny contains finding if {
	some path, container in containers.by_path
	reference := container.envFrom[index].secretRef
	finding := of_secret(container, reference, sprintf("%s.envFrom[%v].secretRef", [path, index]))
}

deny contains finding if {
	some path, container in containers.by_path
	reference := container.env[index].valueFrom.fileKeyRef
	reference != null
	not files_allowed
	finding := {
		"message": sprintf("%s takes a variable from a file", [containers.label(container)]),
		"field": sprintf("%s.env[%v].valueFrom.fileKeyRef", [path, index]),
		"value": values.given_or(reference, ["volumeName"], ""),
		"content": reference,
	}
}

# One that is allowed has no finding: the function is undefined for it.
of_secret(container, reference, field) := {
	"message": sprintf("%s takes variables from the Secret %q", [containers.label(container), values.text(name)]),
	"field": field,
	"value": name,
	"content": reference,
} if {
	reference != null
	name := values.given_or(reference, ["name"], "")
	not allowed(name)
}

# Apart from the rules: within them, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.allowedNames

files_allowed if input.parameters.allowFiles == true
