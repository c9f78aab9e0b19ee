# METADATA
# title: No secrets in manifests
# description: >-
#   A value that is written into a manifest is read by everybody who may read the object, its history in version control
#   and the backups. Variables are judged by their name and by what their value looks like; findings never show it.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/security/secrets-good-practices/
# custom:
#   id: literal-secrets
#   code: SBX-035
#   category: identity
#   severity: high
#   enforcement: Warn
#   remediation: Put the value into a Secret, and replace it where it was published.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["NSA:C-0012", "CIS 5.4.1", "OWASP LLM02"]
#   parameters:
#     namePattern:
#       description: Names of variables that hold a secret, as a regular expression of RE2.
#       type: string
#       format: regex
#       default: "(?i)(?:^|_)(?:PASS|PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|CREDENTIALS?)$"
#     valuePatterns:
#       description: What secrets look like, whatever the variable is called, as regular expressions of RE2.
#       type: array
#       items: {type: string, format: regex, minLength: 1}
#       default:
#         - "-----BEGIN [A-Z ]*PRIVATE KEY"
#         - "\\bAKIA[0-9A-Z]{16}\\b"
#         - "\\bAIza[0-9A-Za-z_-]{35}\\b"
#         - "\\beyJ[0-9A-Za-z_-]{8,}\\.eyJ[0-9A-Za-z_-]{8,}\\."
#         - "\\bgh[oprsu]_[0-9A-Za-z]{36}"
#         - "\\bgithub_pat_[0-9A-Za-z_]{22}"
#         - "\\bglpat-[0-9A-Za-z_-]{20}"
#         - "\\bhf_[0-9A-Za-z]{30}"
#         - "\\bsk-[0-9A-Za-z_-]{20}"
#         - "\\bxox[abprs]-[0-9A-Za-z-]{10}"
package policies.library.literal_secrets

import data.lib.containers
import data.lib.pods
import data.lib.values

# The two reasons are two rules: most variables have neither, and a function for both would be called for each.
deny contains finding if {
	some path, container in containers.by_path
	variable := container.env[index]
	is_string(variable.name)
	regex.match(input.parameters.namePattern, variable.name)
	written(variable)
	not brought(variable)
	finding := found(variable, sprintf("%s.env[%v].value", [path, index]))
}

deny contains finding if {
	some path, container in containers.by_path
	variable := container.env[index]
	is_string(variable.value)
	regex.match(likeness, variable.value)
	not brought(variable)
	finding := found(variable, sprintf("%s.env[%v].value", [path, index]))
}

deny contains finding if {
	variable := pods.object_spec.env[index]
	suspicious(variable)
	finding := found(variable, sprintf("spec.env[%v].value", [index]))
}

found(variable, field) := {
	"message": sprintf("the value of the variable %q is written into the manifest", [name]),
	"field": field,
	"value": name,
	"content": values.given_or(variable, ["value"], ""),
} if {
	name := values.string_at(variable, ["name"])
}

suspicious(variable) if {
	regex.match(input.parameters.namePattern, values.string_at(variable, ["name"]))
	written(variable)
}

suspicious(variable) if regex.match(likeness, values.string_at(variable, ["value"]))

# What refers to another variable as a whole is no secret.
written(variable) if {
	not variable.value in {null, ""}
	not regex.match(`^\$\([^)]*\)$`, values.text(variable.value))
}

likeness := sprintf("(?:%s)", [concat(")|(?:", input.parameters.valuePatterns)]) if {
	count(input.parameters.valuePatterns) > 0
}

# What a claim brings stands in its own list as well.
brought(variable) if [variable.name, variable.value] in own

# As a set: to look for each among all takes the square of them.
own contains [variable.name, variable.value] if some variable in pods.object_spec.env
