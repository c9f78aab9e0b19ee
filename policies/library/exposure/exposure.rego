# METADATA
# title: No names of its own
# description: >-
#   A Service and a host name make a Sandbox known to its neighbours by a name that somebody else may be meant by, and
#   links to Services tell it who else is there.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
# custom:
#   id: exposure
#   code: SBX-089
#   category: network
#   severity: low
#   enforcement: "Off"
#   remediation: Remove the field; set enableServiceLinks to false.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: [none]
#   parameters:
#     allowService:
#       description: Whether a Sandbox may have a Service.
#       type: boolean
#       default: true
package policies.library.exposure

import data.lib.pods
import data.lib.values

deny contains finding if {
	pods.object_spec.service == true
	not services_allowed
	finding := {
		"message": "the Sandbox has a Service",
		"field": "spec.service",
		"value": true,
	}
}

deny contains finding if {
	some name in ["hostname", "hostnameOverride", "setHostnameAsFQDN", "subdomain"]
	value := pods.spec[name]
	not value in {null, "", false}
	finding := {
		"message": "the Sandbox chooses the name by which it is known",
		"field": pods.field(name),
		"value": value,
	}
}

deny contains finding if {
	pods.judged
	not pods.spec.enableServiceLinks == false
	finding := {
		"message": "variables tell the Sandbox of every Service of the namespace",
		"field": pods.field("enableServiceLinks"),
		"value": values.given_or(pods.spec, ["enableServiceLinks"], ""),
	}
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
services_allowed if input.parameters.allowService == true
