# METADATA
# title: Volumes
# description: Every volume of the Pod and every volume claim template of the object, by field path.
package lib.volumes

import data.lib.pods
import data.lib.values

# METADATA
# description: Volumes of the Pod by field path.
by_path[path] := volume if {
	some index, member in values.collection_at(pods.spec, ["volumes"])
	path := sprintf("%s.spec.volumes[%v]", [pods.prefix, index])
	volume := values.as_object(member)
}

# METADATA
# description: The keys of a volume that name a source.
sources(volume) := {key | some key, value in volume; key != "name"; value != null}

# METADATA
# description: How a message names the volume.
label(volume) := sprintf("volume %q", [name]) if {
	name := values.string_at(volume, ["name"])
	name != ""
} else := "a volume without a name"

# METADATA
# description: >-
#   Specs of PersistentVolumeClaims that the object makes, by field path: its volumeClaimTemplates and
#   those within ephemeral volumes.
claims[path] := spec if {
	some index, template in values.collection_at(input, ["object", "spec", "volumeClaimTemplates"])
	path := sprintf("spec.volumeClaimTemplates[%v].spec", [index])
	spec := values.object_at(template, ["spec"])
}

claims[path] := spec if {
	some volume_path, volume in by_path
	template := values.object_at(volume, ["ephemeral", "volumeClaimTemplate"])
	path := sprintf("%s.ephemeral.volumeClaimTemplate.spec", [volume_path])
	spec := values.object_at(template, ["spec"])
}
