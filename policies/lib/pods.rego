# METADATA
# title: The Pod under judgement
# description: >-
#   The effective Pod of the request: that of a Sandbox or SandboxTemplate, or the one that a pool or
#   a claim would run. Field paths are relative to the object that the user applied.
package lib.pods

# Input is referred to as it stands, here and in the other helpers: passed to a function, all of it would be
# read.
spec := input.pod.spec if {
	is_object(input.pod.spec)
} else := {}

metadata := input.pod.metadata if {
	is_object(input.pod.metadata)
} else := {}

# METADATA
# description: >-
#   The spec of the object itself. It is not referred to directly, because not every kind has every field.
object_spec := object.get(input, ["object", "spec"], {})

# METADATA
# description: The spec of the template that a pool or claim borrows from.
template_spec := object.get(input, ["template", "spec"], {})

# METADATA
# description: Path of the Pod template within the object, for example spec.podTemplate.
prefix := input.pod_path if {
	is_string(input.pod_path)
	input.pod_path != ""
} else := "spec.podTemplate"

# METADATA
# description: The path of the Pod's spec.
field_prefix := sprintf("%s.spec", [prefix])

# METADATA
# description: The path of a field of the Pod's spec.
field(name) := sprintf("%s.%s", [field_prefix, name])

# METADATA
# description: >-
#   Whether there is a Pod to judge. A pool or claim whose template does not exist yet has none; a
#   Sandbox or SandboxTemplate always has one, be it empty.
judged if is_object(input.pod)

judged if not input.kind in {"SandboxWarmPool", "SandboxClaim"}
