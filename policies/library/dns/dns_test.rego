package policies.library.dns_test

import data.lib.fixtures
import data.policies.library.dns

request(fields, cluster) := fixtures.configured(fixtures.pod_with(fields), {"allowClusterDNS": cluster, "allowedNameservers": ["1.1.1.1"], "protectedNames": ["cluster.local", "internal"]})

test_denies_a_policy[value] if {
	some value in ["Default", "ClusterFirstWithHostNet", "clusterfirst", "ClusterFirst"]
	dns.deny == {{
		"message": sprintf("with dnsPolicy %s the Sandbox asks other resolvers than its tier says", [value]),
		"field": "spec.podTemplate.spec.dnsPolicy",
		"value": value,
	}} with input as request({"dnsPolicy": value}, false)
}

test_denies_a_resolver[server] if {
	some server in ["192.0.2.1", "01.1.1.1", "", null]
	dns.deny == {{
		"message": "the resolver is not one of those that are allowed",
		"field": "spec.podTemplate.spec.dnsConfig.nameservers[1]",
		"value": server,
	}} with input as request({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", server]}}, true)
}

test_denies_an_alias[name] if {
	some name in ["metadata.google.internal", "internal", "kubernetes.default.svc.CLUSTER.local"]
	dns.deny == {{
		"message": "the alias stands for a name of the platform",
		"field": "spec.podTemplate.spec.hostAliases[1].hostnames[1]",
		"value": {"ip": "192.0.2.1", "hostname": name},
	}} with input as request({"hostAliases": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.1", "hostnames": ["example.com", name]}]}, true)
}

test_denies_without_parameters[note] if {
	some note, fields in {"policy": {"dnsPolicy": "ClusterFirst"}, "resolver": {"dnsConfig": {"nameservers": ["1.1.1.1"]}}}
	count(dns.deny) == 1 with input as object.remove(request(fields, true), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"absent": {},
		"null": {"dnsPolicy": null, "dnsConfig": null, "hostAliases": null},
		"empty": {"dnsPolicy": "", "dnsConfig": {}, "hostAliases": []},
		"its own": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["example.com"]}},
		"those of the cluster": {"dnsPolicy": "ClusterFirst"},
		"another alias": {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["internal.example.com", "notinternal"]}]},
	}
	count(dns.deny) == 0 with input as request(fields, true)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(dns.deny) == {"template.spec.podTemplate.spec.dnsPolicy"} with input as fixtures.as_kind(request({"dnsPolicy": "Default"}, true), kind, path)
}
