package policies.library.managed_network_test

import data.policies.library.managed_network

template(value, namespace) := {
	"object": {"spec": {"networkPolicyManagement": value}},
	"namespace": {"name": namespace},
	"parameters": {"allowNamespaces": ["cilium"]},
}

test_denies[value] if {
	some value in ["Unmanaged", "managed", false]
	managed_network.deny == {{
		"message": "nobody manages the network policy of the template",
		"field": "spec.networkPolicyManagement",
		"value": value,
	}} with input as template(value, "a")
}

test_denies_without_parameters if {
	count(managed_network.deny) == 1 with input as object.remove(template("Unmanaged", "cilium"), ["parameters"])
}

test_allows[note] if {
	some note, case in {"listed namespace": ["Unmanaged", "cilium"], "managed": ["Managed", "a"], "empty": ["", "a"], "null": [null, "a"]}
	count(managed_network.deny) == 0 with input as template(case[0], case[1])
}

test_allows_what_is_absent if {
	count(managed_network.deny) == 0 with input as {"object": {"spec": {}}}
}
