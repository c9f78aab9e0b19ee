package policies.library.projected_identity_test

import data.lib.fixtures
import data.policies.library.projected_identity

projecting(sources) := fixtures.with_volumes([{"name": "id", "projected": {"sources": sources}}])

test_denies_each[kind] if {
	some kind in ["clusterTrustBundle", "podCertificate", "serviceAccountToken"]
	fixtures.said(projected_identity.deny) == {{
		"message": sprintf(`volume "id" projects a %s`, [kind]),
		"field": sprintf("spec.podTemplate.spec.volumes[0].projected.sources[1].%s", [kind]),
		"value": `{"path":"x"}`,
	}} with input as fixtures.sandbox(projecting([{"configMap": {"name": "x"}}, {kind: {"path": "x"}}]))
}

test_denies_two_in_one_source if {
	count(projected_identity.deny) == 2 with input as fixtures.sandbox(projecting([{"serviceAccountToken": {}, "podCertificate": "x"}]))
}

test_denies_tokens_beyond_the_parameters[note] if {
	some note, token in {
		"other audience": {"audience": "vault2"},
		"no audience": {},
		"null audience": {"audience": null},
		"too long": {"audience": "vault", "expirationSeconds": 1201},
		"default lifetime too long": {"audience": "vault"},
		"lifetime of the wrong type": {"audience": "vault", "expirationSeconds": "60"},
	}
	parameters := {"allowedAudiences": ["vault"], "maxExpirationSeconds": 1200}
	count(projected_identity.deny) == 1 with input as fixtures.configured(projecting([{"serviceAccountToken": token}]), parameters)
}

# What was stored before is known by its value: a token that lasts longer is another one.
test_tells_tokens_apart_by_all_they_have if {
	values := {finding.value |
		some seconds in [600, 86400]
		some finding in projected_identity.deny with input as fixtures.sandbox(projecting([{"serviceAccountToken": {"expirationSeconds": seconds}}]))
	}
	count(values) == 2
}

test_an_audience_allows_tokens_only if {
	count(projected_identity.deny) == 1 with input as fixtures.configured(projecting([{"podCertificate": {"audience": "vault"}}]), {"allowedAudiences": ["vault"]})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(projecting([{"serviceAccountToken": {}}])), kind, path)
	fixtures.fields(projected_identity.deny) == {"template.spec.podTemplate.spec.volumes[0].projected.sources[0].serviceAccountToken"} with input as request
}

test_denies_a_lifetime_beyond_the_default if {
	token := {"audience": "vault", "expirationSeconds": 3601}
	count(projected_identity.deny) == 1 with input as fixtures.configured(projecting([{"serviceAccountToken": token}]), {"allowedAudiences": ["vault"]})
}

test_allows_a_shorter_lifetime if {
	token := {"audience": "vault", "expirationSeconds": 600}
	parameters := {"allowedAudiences": ["vault"], "maxExpirationSeconds": 1200}
	count(projected_identity.deny) == 0 with input as fixtures.configured(projecting([{"serviceAccountToken": token}]), parameters)
}

test_allows_a_listed_audience[note] if {
	some note, parameters in {
		"default lifetime": {"allowedAudiences": ["vault"]},
		"longest": {"allowedAudiences": ["vault"], "maxExpirationSeconds": 3600},
	}
	count(projected_identity.deny) == 0 with input as fixtures.configured(projecting([{"serviceAccountToken": {"audience": "vault"}}]), parameters)
}

test_allows[note] if {
	some note, sources in {
		"other sources": [{"configMap": {"name": "x"}}, {"downwardAPI": {}}],
		"null": [{"serviceAccountToken": null}],
		"null member": [null],
		"no list": null,
	}
	count(projected_identity.deny) == 0 with input as fixtures.sandbox(projecting(sources))
}
