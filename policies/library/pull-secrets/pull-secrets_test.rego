package policies.library.pull_secrets_test

import data.lib.fixtures
import data.policies.library.pull_secrets

request(secrets) := fixtures.configured(fixtures.pod_with({"imagePullSecrets": secrets}), {"allowed": ["shared"]})

test_denies[note] if {
	some note, case in {"named": [{"name": "mine"}, "mine"], "nameless": [{}, ""], "null": [{"name": null}, ""], "no object": ["shared", ""]}
	pull_secrets.deny == {{
		"message": sprintf("images would be pulled by the credentials %q", [case[1]]),
		"field": "spec.podTemplate.spec.imagePullSecrets[1].name",
		"value": case[1],
	}} with input as request([{"name": "shared"}, case[0]])
}

test_denies_without_parameters if {
	count(pull_secrets.deny) == 1 with input as object.remove(request([{"name": "shared"}]), ["parameters"])
}

test_allows[note] if {
	some note, secrets in {"listed": [{"name": "shared"}], "empty": [], "null": null}
	count(pull_secrets.deny) == 0 with input as request(secrets)
}

test_allows_absent if {
	count(pull_secrets.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(pull_secrets.deny) == {"template.spec.podTemplate.spec.imagePullSecrets[0].name"} with input as fixtures.as_kind(request([{"name": "mine"}]), kind, path)
}
