# METADATA
# title: Tenants claim
# description: >-
#   A Sandbox that a tenant makes directly holds what the tenant wrote; one that is claimed holds what the platform put into
#   a template. A tier that lets tenants only claim does the same by namespace; this rule is for groups. It holds what a
#   Sandbox is made of as well, also when its claim is gone: suspending and ending one is everybody's.
# related_resources:
#   - ref: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
# custom:
#   id: direct-sandbox
#   code: SBX-100
#   category: access
#   severity: medium
#   enforcement: "Off"
#   remediation: Claim a Sandbox from a pool.
#   kinds: [Sandbox]
#   controls: ["CIS 5.1.4"]
#   at_least_one: [groups]
#   parameters:
#     groups:
#       description: Groups that may make Sandboxes without a claim.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.direct_sandbox

import data.lib.owners
import data.lib.users
import data.lib.values

deny contains finding if {
	written
	users.known
	not users.of_groups(permitted)
	not owners.ours
	finding := {
		"message": "only some groups make Sandboxes without a claim",
		"field": "spec",
		"value": input.user.username,
	}
}

default permitted := []

permitted := input.parameters.groups

written if input.operation == "CREATE"

# Who makes another of a Sandbox that is there makes one, also of one whose claim left it behind.
written if {
	input.operation == "UPDATE"
	some field in ["podTemplate", "service", "volumeClaimTemplates"]
	values.given_or(input.object.spec, field, null) != values.given_or(input.old_object.spec, field, null)
}
