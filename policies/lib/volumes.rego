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
#   template that it borrows from and does not replace, and those within ephemeral volumes. The server lists them
#   beforehand in input.claims; without that the same answer is computed here.
claims := input.claims if {
	is_object(input.claims)
} else := {path: spec |
	some base, template in claim_templates
	path := sprintf("%s.spec", [base])
	spec := values.object_at(template, ["spec"])
}

# METADATA
# description: >-
#   The annotations of those PersistentVolumeClaims, by the field path of the mapping that gives them. The server
#   lists them beforehand in input.claim_annotations; without that the same answer is computed here.
claim_annotations := input.claim_annotations if {
	is_object(input.claim_annotations)
} else := {path: annotations |
	some base, template in claim_templates
	annotations := template.metadata.annotations
	path := annotations_field(base)
}

# METADATA
# description: The annotation that Kubernetes takes a claim's storage class from before it looks at the field.
class_annotation := "volume.beta.kubernetes.io/storage-class"

# METADATA
# description: >-
#   The storage class of a claim by the field path of its spec, where that stands, and that it is written if it is:
#   an empty one that is written is not the default of the cluster.
class_of(path) := {"class": values.given_or(annotations, [class_annotation], ""), "field": field, "written": true} if {
	base := annotations_field(trim_suffix(path, ".spec"))
	annotations := values.as_object(claim_annotations[base])
	class_annotation in object.keys(annotations)
	field := sprintf("%s[%s]", [base, class_annotation])
} else := {"class": class, "field": sprintf("%s.storageClassName", [path]), "written": true} if {
	class := values.given(claims[path], ["storageClassName"])
} else := {"class": "", "field": sprintf("%s.storageClassName", [path])}

annotations_field(base) := sprintf("%s.metadata.annotations", [base])

claim_templates[path] := template if {
	some index, template in pods.object_spec.volumeClaimTemplates
	path := sprintf("spec.volumeClaimTemplates[%v]", [index])
}

# The Sandboxes of a pool and those of its claims get the volumes of the template.
claim_templates[path] := template if {
	some index, template in pods.template_spec.volumeClaimTemplates
	not replaced(template)
	path := sprintf("template.spec.volumeClaimTemplates[%v]", [index])
}

claim_templates[path] := template if {
	some volume_path, volume in by_path
	values.given(volume, ["ephemeral"]) != null
	path := sprintf("%s.ephemeral.volumeClaimTemplate", [volume_path])
	template := values.object_at(volume, ["ephemeral", "volumeClaimTemplate"])
}

# Whether the object brings another in the place of a template's.
replaced(template) if {
	pods.template_spec.volumeClaimTemplatesPolicy == "Overrides"
	name := values.string_at(template, ["metadata", "name"])
	name != ""
	some other in pods.object_spec.volumeClaimTemplates
	other.metadata.name == name
}

# METADATA
# description: Where the volumeClaimTemplates stand that the object brings or borrows.
templates_field := "template.spec.volumeClaimTemplates" if {
	input.kind in {"SandboxWarmPool", "SandboxClaim"}
} else := "spec.volumeClaimTemplates"
