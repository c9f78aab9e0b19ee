# METADATA
# title: No end too far away
# description: >-
#   The end of a Sandbox is at most a set time away from its beginning, however often it is put off.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
# custom:
#   id: max-ttl
#   code: SBX-059
#   category: lifecycle
#   severity: low
#   enforcement: Warn
#   remediation: Choose an earlier shutdownTime.
#   kinds: [Sandbox, SandboxClaim]
#   controls: ["OWASP LLM10"]
#   parameters:
#     maxHours:
#       description: Hours from the beginning to the latest end.
#       type: integer
#       minimum: 1
#       default: 720
package policies.library.max_ttl

import data.lib.pods
import data.lib.values

deny contains finding if {
	end := pods.object_spec.shutdownTime
	put_off(end, ["spec", "shutdownTime"])
	finding := found("spec.shutdownTime", end)
}

deny contains finding if {
	end := pods.object_spec.lifecycle.shutdownTime
	put_off(end, ["spec", "lifecycle", "shutdownTime"])
	finding := found("spec.lifecycle.shutdownTime", end)
}

found(field, end) := {
	"message": sprintf("it ends more than %d hours after it began", [hours]),
	"field": field,
	"value": end,
}

put_off(end, path) if {
	end != null
	end != values.given_or(old, path, null)
	not in_time(end)
	not earlier(end, path)
}

# What already ended too late may end earlier.
earlier(end, path) if time.parse_rfc3339_ns(end) <= time.parse_rfc3339_ns(values.given(old, path))

default old := {}

old := input.old_object

in_time(end) if time.parse_rfc3339_ns(end) <= begun + ((hours * 3600) * 1000000000)

# A new object has no creation time yet.
begun := time.parse_rfc3339_ns(created) if {
	created := object.get(input.object, ["metadata", "creationTimestamp"], "")
	is_string(created)
	created != ""
} else := time.parse_rfc3339_ns(input.now)

default hours := 720

hours := values.given(input.parameters, ["maxHours"])
