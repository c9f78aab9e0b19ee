# METADATA
# title: The Pod under judgement
# description: >-
#   The effective Pod of the request: that of a Sandbox or SandboxTemplate, or the one that a pool or
#   a claim would run. Field paths are relative to the object that the user applied.
package lib.pods

import data.lib.values

spec := values.object_at(input, ["pod", "spec"])

metadata := values.object_at(input, ["pod", "metadata"])

# METADATA
# description: Path of the Pod template within the object, for example spec.podTemplate.
prefix := path if {
	path := values.string_at(input, ["pod_path"])
	path != ""
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
judged if is_object(object.get(input, "pod", null))

judged if not object.get(input, "kind", "") in {"SandboxWarmPool", "SandboxClaim"}
