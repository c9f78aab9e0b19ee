package policies.library.secret_volumes_test

import data.lib.fixtures
import data.policies.library.secret_volumes

request(volume) := fixtures.configured(fixtures.with_volumes([{"name": "tmp", "emptyDir": {}}, volume]), {"allowedNames": ["shared"]})

projected(sources) := {"name": "a", "projected": {"sources": sources}}

test_denies[note] if {
	some note, case in {
		"named": [{"secretName": "keys"}, "keys"],
		"nameless": [{}, ""],
		"name null": [{"secretName": null}, ""],
		"case": [{"secretName": "Shared"}, "Shared"],
		"no object": ["keys", ""],
	}
	fixtures.said(secret_volumes.deny) == {{
		"message": sprintf(`volume "a" gives the Secret %q to the Sandbox`, [case[1]]),
		"field": "spec.podTemplate.spec.volumes[1].secret.secretName",
		"value": case[1],
	}} with input as request({"name": "a", "secret": case[0]})
}

test_denies_a_projected_one[note] if {
	some note, case in {"named": [{"name": "keys"}, "keys"], "nameless": [{}, ""]}
	fixtures.said(secret_volumes.deny) == {{
		"message": sprintf(`volume "a" gives the Secret %q to the Sandbox`, [case[1]]),
		"field": "spec.podTemplate.spec.volumes[1].projected.sources[1].secret.name",
		"value": case[1],
	}} with input as request(projected([{"secret": {"name": "shared"}}, {"secret": case[0]}, {"secret": null}, {"configMap": {"name": "a"}}]))
}

test_denies_what_a_driver_reads[driver] if {
	some driver, field in secret_volumes.drivers
	reference := object.get({"azureFile": "keys"}, driver, {"name": "keys"})
	fixtures.said(secret_volumes.deny) == {{
		"message": `volume "a" gives the Secret "keys" to the Sandbox`,
		"field": sprintf("spec.podTemplate.spec.volumes[1].%s.%s", [driver, field]),
		"value": "keys",
	}} with input as request({"name": "a", driver: {field: reference}})
}

test_knows_every_driver_that_reads_secrets if {
	secret_volumes.drivers == {
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
}

test_denies_without_parameters if {
	count(secret_volumes.deny) == 1 with input as object.remove(request({"name": "a", "secret": {"secretName": "shared"}}), ["parameters"])
}

test_allows[note] if {
	some note, volume in {
		"listed": {"name": "a", "secret": {"secretName": "shared"}},
		"listed and projected": projected([{"secret": {"name": "shared"}}]),
		"listed for a driver": {"name": "a", "csi": {"driver": "a", "nodePublishSecretRef": {"name": "shared"}}},
		"listed as text": {"name": "a", "azureFile": {"secretName": "shared"}},
		"null": {"name": "a", "secret": null},
		"projected null": {"name": "a", "projected": null},
		"no sources": projected(null),
		"a driver without": {"name": "a", "csi": {"driver": "a", "nodePublishSecretRef": null}},
		"another": {"name": "a", "configMap": {"name": "keys"}},
	}
	count(secret_volumes.deny) == 0 with input as request(volume)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(secret_volumes.deny) == {"template.spec.podTemplate.spec.volumes[1].secret.secretName"} with input as fixtures.as_kind(request({"name": "a", "secret": {"secretName": "keys"}}), kind, path)
}
