# METADATA
# title: No variables that take over
# description: >-
#   Some environment variables load code, or send traffic elsewhere, in a container that somebody else
#   wrote. A name that ends in * stands for all that begin like it, and one that begins with * for all that end so.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/
# custom:
#   id: claim-env
#   code: SBX-037
#   category: identity
#   severity: high
#   enforcement: Warn
#   remediation: Choose another name.
#   kinds: [SandboxClaim]
#   controls: ["C-0316"]
#   parameters:
#     denyNames:
#       description: Names that may not be set; a * at the end or the beginning stands for anything.
#       type: array
#       items: {type: string, minLength: 1}
#       default:
#         - LD_*
#         - PATH
#         - PYTHON*
#         - NODE_OPTIONS
#         - BASH_ENV
#         - ENV
#         - GIT_SSH_COMMAND
#         - "*_PROXY"
#         - "*_proxy"
#         - KUBERNETES_*
#         - AWS_*
#         - GOOGLE_*
#     allowNames:
#       description: Names that may be set all the same.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#     maxEntries:
#       description: Variables of a claim.
#       type: integer
#       minimum: 1
#       default: 100
#     maxBytes:
#       description: Names and values of all of them together.
#       type: integer
#       minimum: 1
#       default: 65536
package policies.library.claim_env

import data.lib.values

deny contains finding if {
	some index, variable in input.object.spec.env
	name := values.string_at(variable, ["name"])
	fault := wrong(name)
	finding := {
		"message": sprintf("the variable %q %s", [name, fault]),
		"field": sprintf("spec.env[%d].name", [index]),
		"value": name,
		"content": variable,
	}
}

deny contains finding if {
	some indices in places
	some index in (indices - {min(indices)})
	variable := input.object.spec.env[index]
	finding := {
		"message": sprintf("the variable %q is set twice", [variable.name]),
		"field": sprintf("spec.env[%d].name", [index]),
		"value": variable.name,
		"content": variable,
	}
}

# Where each name of each container stands: to look for each among all others takes the square of them.
places[target] contains index if {
	some index, variable in input.object.spec.env
	target := [variable.name, values.given_or(variable, ["containerName"], "")]
}

deny contains finding if {
	number := count(values.collection_at(input.object.spec, ["env"]))
	number > given.maxEntries
	finding := too_much("variables", number, given.maxEntries)
}

deny contains finding if {
	number := sum([size |
		some variable in input.object.spec.env
		some part in ["name", "value"]
		size := values.bytes(values.string_at(variable, [part]))
	])
	number > given.maxBytes
	finding := too_much("bytes of variables", number, given.maxBytes)
}

too_much(what, number, most) := {
	"message": sprintf("there are %d %s, at most %d are allowed", [number, what, most]),
	"field": "spec.env",
	"value": number,
	"content": what,
	"amount": number,
}

wrong(name) := "can take over the container" if {
	some pattern in values.collection_at(given, ["denyNames"])
	values.matches(pattern, name)
	not name in values.collection_at(given, ["allowNames"])
}

default given := {}

given := input.parameters
