# METADATA
# title: An end for every Sandbox
# description: >-
#   A Sandbox without an end runs, and costs, until somebody remembers it. One that a claim or pool made ends with that.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
# custom:
#   id: ttl-required
#   code: SBX-058
#   category: lifecycle
#   severity: low
#   enforcement: "Off"
#   remediation: Set spec.shutdownTime; for a claim spec.lifecycle.shutdownTime or ttlSecondsAfterFinished.
#   kinds: [Sandbox, SandboxClaim]
#   controls: ["OWASP LLM10"]
package policies.library.ttl_required

import data.lib.owners
import data.lib.pods

deny contains finding if {
	field := fields[input.kind]
	not ends
	not owners.ours
	finding := {
		"message": "nothing says when it ends",
		"field": field,
		"value": "",
	}
}

fields := {"Sandbox": "spec.shutdownTime", "SandboxClaim": "spec.lifecycle.shutdownTime"}

ends if {
	input.kind == "Sandbox"
	given(pods.object_spec.shutdownTime)
}

ends if {
	input.kind == "SandboxClaim"
	given(pods.object_spec.lifecycle.shutdownTime)
}

ends if {
	input.kind == "SandboxClaim"
	is_number(pods.object_spec.lifecycle.ttlSecondsAfterFinished)
}

given(time) if {
	is_string(time)
	time != ""
}
