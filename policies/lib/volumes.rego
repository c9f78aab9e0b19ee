# METADATA
# title: Volumes
# description: Every volume of the Pod and every volume claim template of the object, by field path.
package lib.volumes

import data.lib.containers
import data.lib.pods
import data.lib.values

# METADATA
# description: >-
#   Volumes of the Pod by field path; something that is not an object counts as an empty volume. The server
#   lists them beforehand in input.volumes; without that the same answer is computed here.
by_path := input.volumes if {
	is_object(input.volumes)
} else := {path: volume |
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
#   All that a volume opens, as a set that grows with it: what its source is, who has which part of it, who may write to
#   that, and who has what is mounted within it later. Names of containers stand for them.
opened(volume, source) := opened_by(source) | object.keys(users) if {
	users := mounted[volume.name]
} else := opened_by(source)

# For all volumes at once: to look for each among all mounts takes the product of both.
mounted := object.union_n([{name: {part: null}} |
	some container in containers.by_path
	some list in ["volumeMounts", "volumeDevices"]
	some mount in container[list]
	name := values.given(mount, ["name"])
	some part in parts(values.string_at(container, ["name"]), mount)
])

opened_by(source) := {object.remove(source, ["readOnly"])} if {
	source.readOnly == true
} else := {object.remove(source, ["readOnly"]), "for writing"} if {
	is_object(source)
} else := {source, "for writing"}

parts(container, mount) := {[container, where, way] | some way in ways(mount)} if {
	where := object.filter(mount, ["subPath", "subPathExpr"])
}

ways(mount) := {"reading"} if {
	mount.readOnly == true
	mount.recursiveReadOnly == "Enabled"
} else := {"reading", "what is within"} if {
	mount.readOnly == true
} else := {"reading", "what is within", "writing"}

# METADATA
# description: >-
#   Specs of PersistentVolumeClaims that the object makes, by field path: its volumeClaimTemplates, those of the
#   template that it borrows from, and those within ephemeral volumes. The server lists them beforehand in input.claims; without that the same
#   answer is computed here.
claims := input.claims if {
	is_object(input.claims)
} else := object.union(own_claims, ephemeral_claims)

own_claims[path] := spec if {
	some index, template in pods.object_spec.volumeClaimTemplates
	path := sprintf("spec.volumeClaimTemplates[%v].spec", [index])
	spec := values.object_at(template, ["spec"])
}

# The Sandboxes of a pool and those of its claims get the volumes of the template.
own_claims[path] := spec if {
	some index, template in pods.template_spec.volumeClaimTemplates
	path := sprintf("template.spec.volumeClaimTemplates[%v].spec", [index])
	spec := values.object_at(template, ["spec"])
}

# METADATA
# description: Where the volumeClaimTemplates stand that the object brings or borrows.
templates_field := "template.spec.volumeClaimTemplates" if {
	input.kind in {"SandboxWarmPool", "SandboxClaim"}
} else := "spec.volumeClaimTemplates"

ephemeral_claims[path] := spec if {
	some volume_path, volume in by_path
	values.given(volume, ["ephemeral"])
	path := sprintf("%s.ephemeral.volumeClaimTemplate.spec", [volume_path])
	spec := values.object_at(volume, ["ephemeral", "volumeClaimTemplate", "spec"])
}
