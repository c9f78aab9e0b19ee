# METADATA
# title: Secrets in volumes from a list
# description: >-
#   What is mounted is given to code that nobody reviewed, and a Sandbox can mount every Secret of its namespace. Those
#   of a projected volume count, and those that a driver reads for the volume.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/configuration/secret/
# custom:
#   id: secret-volumes
#   code: SBX-033
#   category: identity
#   severity: medium
#   enforcement: "Off"
#   remediation: Remove the volume, or use a Secret that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["CIS 5.1.2", "NSA:C-0012", "OWASP LLM02"]
#   parameters:
#     allowedNames:
#       description: Names of Secrets that Sandboxes may mount.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
package policies.library.secret_volumes

import data.lib.values
import data.lib.volumes

deny contains finding if {
	some path, volume in volumes.by_path
	volume.secret != null
	name := values.given_or(volume.secret, ["secretName"], "")
	not allowed(name)
	finding := found(volume, name, volume.secret, sprintf("%s.secret.secretName", [path]))
}

deny contains finding if {
	some path, volume in volumes.by_path
	secret := volume.projected.sources[index].secret
	secret != null
	name := values.given_or(secret, ["name"], "")
	not allowed(name)
	finding := found(volume, name, secret, sprintf("%s.projected.sources[%v].secret.name", [path, index]))
}

deny contains finding if {
	some path, volume in volumes.by_path
	some driver, field in drivers
	reference := volume[driver][field]
	reference != null
	name := values.given_or(reference, ["name"], reference)
	not allowed(name)
	finding := found(volume, name, volume[driver], sprintf("%s.%s.%s", [path, driver, field]))
}

drivers := {
	"azureFile": "secretName",
	"cephfs": "secretRef",
	"cinder": "secretRef",
	"csi": "nodePublishSecretRef",
	"flexVolume": "secretRef",
	"iscsi": "secretRef",
	"rbd": "secretRef",
	"scaleIO": "secretRef",
	"storageos": "secretRef",
}

found(volume, name, source, field) := {
	"message": sprintf("%s gives the Secret %q to the Sandbox", [volumes.label(volume), values.text(name)]),
	"field": field,
	"value": name,
	"content": volumes.opened(volume, source),
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(name) if name in input.parameters.allowedNames
