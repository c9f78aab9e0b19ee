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
import data.lib.times
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
	"message": sprintf("it does not end within %d hours after it began", [hours]),
	"field": field,
	"value": end,
}

put_off(end, path) if {
	end != null
	end != values.given_or(old, path, null)
	not in_time(end)
	not no_later(end, path)
}

# What is to end at once may, however old it is. The time is read last, since what rests on it is judged again and again.
in_time(end) if {
	times.seconds(end) <= begun + (hours * 3600)
} else if {
	times.seconds(end) <= now
}

# What ended too late may end earlier, and what never ended at any time.
no_later(end, path) if {
	input.old_object
	at := times.seconds(end)
	not later(at, path)
}

later(at, path) if at > times.seconds(values.given(old, path))

default old := {}

old := input.old_object

now := times.seconds(input.now)

# A new object has no creation time yet.
begun := at if {
	at := times.seconds(values.given(input.object, ["metadata", "creationTimestamp"]))
} else := now

default hours := 720

hours := values.given(input.parameters, ["maxHours"])
