# METADATA
# title: Storage classes from a list
# description: >-
#   The storage class decides what a volume costs and who else can reach it. Leaving it out takes the
#   default of the cluster, which has to be on the list as well; an empty name asks for a volume that is there already.
#   The older annotation volume.beta.kubernetes.io/storage-class of a volume claim counts before the field.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/persistent-volumes/
# custom:
#   id: storage-class
#   code: SBX-074
#   category: storage
#   severity: medium
#   enforcement: "Off"
#   remediation: Name a storage class that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.1.9"]
#   at_least_one: [allowed]
#   parameters:
#     allowed:
#       description: Storage classes that may be used; "" stands for the default of the cluster.
#       type: array
#       items: {type: string}
#       default: []
#     allowWithoutClass:
#       description: Whether the name may be written as "", which asks for a volume that somebody made by hand.
#       type: boolean
#       default: false
package policies.library.storage_class

import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, _ in volumes.claims
	chosen := volumes.class_of(path)
	not allowed(chosen)
	finding := {
		"message": sprintf("the storage class %q is not allowed", [values.text(chosen.class)]),
		"field": chosen.field,
		"value": chosen.class,
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(chosen) if {
	chosen.class != ""
	chosen.class in input.parameters.allowed
}

allowed(chosen) if {
	chosen.class == ""
	not chosen.written
	"" in input.parameters.allowed
}

allowed(chosen) if {
	chosen.class == ""
	chosen.written
	input.parameters.allowWithoutClass == true
}
