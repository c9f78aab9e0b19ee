# METADATA
# title: Resolvers of the platform
# description: >-
#   By its resolvers a Sandbox learns the names of the cluster and carries data out. One of the node, or one that nobody
#   knows, passes by what the tier says; an alias for a name of the platform has programs talk to somebody else. What a
#   Pod leaves open the tier decides.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
# custom:
#   id: dns
#   code: SBX-088
#   category: network
#   severity: medium
#   enforcement: Warn
#   remediation: Leave dnsPolicy and dnsConfig out, or use resolvers that the platform team allows.
#   kinds: [Sandbox, SandboxTemplate, SandboxWarmPool, SandboxClaim]
#   controls: ["OWASP LLM06"]
#   parameters:
#     allowClusterDNS:
#       description: Whether ClusterFirst may be written, which asks the resolvers of the cluster.
#       type: boolean
#       default: true
#     allowedNameservers:
#       description: Resolvers that may be named. Sandboxes of a template whose network is the default get the first two.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [8.8.8.8, 1.1.1.1]
#     protectedNames:
#       description: Names that an alias may not stand for, and those below them.
#       type: array
#       items: {type: string, minLength: 1}
#       default: [cluster.local, internal, svc, instance-data, kubernetes, kubernetes.default]
package policies.library.dns

import data.lib.labels
import data.lib.pods
import data.lib.values

deny contains finding if {
	value := pods.spec.dnsPolicy
	not value in {null, "", "None"}
	not allowed_policy(value)
	finding := {
		"message": sprintf("with dnsPolicy %s the Sandbox asks other resolvers than its tier says", [values.text(value)]),
		"field": pods.field("dnsPolicy"),
		"value": value,
	}
}

deny contains finding if {
	some index, server in pods.spec.dnsConfig.nameservers
	not allowed_server(server)
	finding := {
		"message": "the resolver is not one of those that are allowed",
		"field": sprintf("%s[%v]", [pods.field("dnsConfig.nameservers"), index]),
		"value": server,
	}
}

deny contains finding if {
	some i, entry in pods.spec.hostAliases
	some j, name in entry.hostnames
	some protected in input.parameters.protectedNames
	labels.below(lower(values.text(name)), protected)
	finding := {
		"message": "the alias stands for a name of the platform",
		"field": sprintf("%s[%v].hostnames[%v]", [pods.field("hostAliases"), i, j]),
		"value": {"ip": values.given_or(entry, ["ip"], ""), "hostname": name},
	}
}

# Apart from the rules: within them, absent parameters would leave the whole rule undefined.
allowed_policy("ClusterFirst") if input.parameters.allowClusterDNS == true

allowed_server(server) if server in input.parameters.allowedNameservers
