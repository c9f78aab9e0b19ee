# METADATA
# title: Templates and pools are the platform's
# description: >-
#   What claims get is written by those who answer for it. Rights by role say who may write at all; this rule says it of
#   tenants whose roles are wider.
# related_resources:
#   - ref: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
# custom:
#   id: platform-owned
#   code: SBX-101
#   category: access
#   severity: medium
#   enforcement: "Off"
#   remediation: Ask the platform team for the template or pool.
#   kinds: [SandboxTemplate, SandboxWarmPool]
#   controls: ["CIS 5.1.4"]
#   at_least_one: [groups]
#   parameters:
#     groups:
#       description: >-
#         Groups that may write templates and pools; for autoscaled pools system:serviceaccounts:kube-system too.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.platform_owned

import data.lib.users
import data.lib.values

deny contains finding if {
	users.known
	not users.of_groups(permitted)
	not unchanged
	finding := {
		"message": "only some groups write templates and pools",
		"field": "spec",
		"value": input.user.username,
	}
}

default permitted := []

permitted := input.parameters.groups

# An update is its writer's for what it changes, and for nothing that stood there before.
unchanged if {
	input.operation == "UPDATE"
	input.object.spec == input.old_object.spec
	values.object_at(input.object.metadata, ["labels"]) == values.object_at(input.old_object.metadata, ["labels"])
	values.object_at(input.object.metadata, ["annotations"]) == values.object_at(input.old_object.metadata, ["annotations"])
}
