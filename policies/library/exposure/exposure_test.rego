package policies.library.exposure_test

import data.lib.fixtures
import data.policies.library.exposure

request(fields, service) := fixtures.configured(fixtures.pod_with(object.union({"enableServiceLinks": false}, fields)), {"allowService": service})

serving(value, allowed) := object.union(request({}, allowed), {"object": {"spec": {"service": value}}})

test_denies_a_name[name] if {
	some name, value in {"hostname": "db", "hostnameOverride": "db.example.com", "setHostnameAsFQDN": true, "subdomain": "team"}
	exposure.deny == {{
		"message": "the Sandbox chooses the name by which it is known",
		"field": sprintf("spec.podTemplate.spec.%s", [name]),
		"value": value,
	}} with input as request({name: value}, true)
}

test_denies_links[note] if {
	some note, case in {"true": [true, true], "null": [null, ""], "text": ["false", "false"]}
	exposure.deny == {{
		"message": "variables tell the Sandbox of every Service of the namespace",
		"field": "spec.podTemplate.spec.enableServiceLinks",
		"value": case[1],
	}} with input as request({"enableServiceLinks": case[0]}, true)
}

test_denies_links_that_are_not_written if {
	fixtures.fields(exposure.deny) == {"spec.podTemplate.spec.enableServiceLinks"} with input as fixtures.sandbox(fixtures.plain)
}

test_denies_a_service if {
	exposure.deny == {{
		"message": "the Sandbox has a Service",
		"field": "spec.service",
		"value": true,
	}} with input as serving(true, false)
	count(exposure.deny) == 1 with input as object.remove(serving(true, true), ["parameters"])
}

test_allows[note] if {
	some note, given in {
		"nothing": request({}, false),
		"null": request({"hostname": null, "subdomain": null, "setHostnameAsFQDN": null}, false),
		"empty": request({"hostname": "", "hostnameOverride": "", "setHostnameAsFQDN": false}, false),
		"a service": serving(true, true),
		"no service": serving(false, false),
		"service null": serving(null, false),
	}
	count(exposure.deny) == 0 with input as given
}

test_judges_no_pod_that_does_not_exist_yet if {
	count(exposure.deny) == 0 with input as {"kind": "SandboxClaim", "object": {}, "parameters": {}}
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(exposure.deny) == {"template.spec.podTemplate.spec.subdomain"} with input as fixtures.as_kind(request({"subdomain": "a"}, true), kind, path)
}
