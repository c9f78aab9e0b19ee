# METADATA
# title: Few ports to the outside
# description: >-
#   Mail, remote shells and databases of others are reached by their ports. Rules that open addresses name the ports that
#   Sandboxes need; those for Pods of the cluster are not judged.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/services-networking/network-policies/
# custom:
#   id: egress-ports
#   code: SBX-085
#   category: network
#   severity: low
#   enforcement: "Off"
#   remediation: List the ports, one by one, and only those that are allowed.
#   kinds: [SandboxTemplate]
#   controls: ["OWASP LLM06"]
#   at_least_one: [allowedPorts]
#   parameters:
#     allowedPorts:
#       description: Ports that may be reached outside of the cluster.
#       type: array
#       items: {type: integer, minimum: 1, maximum: 65535}
#       default: [53, 80, 443]
package policies.library.egress_ports

import data.lib.values

deny contains finding if {
	some index, rule in input.object.spec.networkPolicy.egress
	count(values.collection_at(rule, ["ports"])) == 0
	outward(rule)
	finding := {
		"message": "a rule without ports allows every port",
		"field": sprintf("spec.networkPolicy.egress[%v].ports", [index]),
		"value": values.given_or(rule, ["to"], ""),
	}
}

deny contains finding if {
	some i, rule in input.object.spec.networkPolicy.egress
	peers := peers_of(rule)
	some j, port in rule.ports
	fault := wrong(port)
	outward(rule)
	finding := {
		"message": fault,
		"field": sprintf("spec.networkPolicy.egress[%v].ports[%v]", [i, j]),
		"value": port,
		"content": peers,
	}
}

wrong(port) := "a range of ports is open" if {
	values.given(port, ["endPort"]) != values.given(port, ["port"])
} else := "the port is not one of those that are allowed" if {
	not allowed(port)
}

# Apart from the rule: within it, absent parameters would leave the whole rule undefined.
allowed(port) if port.port in input.parameters.allowedPorts

outward(rule) if count(values.collection_at(rule, ["to"])) == 0

outward(rule) if rule.to[_].ipBlock != null

# As a set that grows with them; of very many there is one member for all, since each port of the rule has them.
peers_of(rule) := {peer | some peer in list} if {
	list := values.collection_at(rule, ["to"])
	count(list) <= 20
} else := {crypto.sha256(json.marshal(rule.to))}
