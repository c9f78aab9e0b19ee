package policies.library.tolerations_test

import data.lib.fixtures
import data.policies.library.tolerations

request(value) := fixtures.configured(fixtures.pod_with({"tolerations": value}), {"allowed": ["sandbox", ""]})

test_denies[note] if {
	some note, toleration in {
		"everything": {"operator": "Exists"},
		"an empty key, listed or not": {"key": "", "operator": "Exists"},
		"the control plane": {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
		"a key that begins alike": {"key": "sandbox2"},
		"null": null,
	}
	tolerations.deny == {{
		"message": "the toleration is not one of those that are allowed",
		"field": "spec.podTemplate.spec.tolerations[1]",
		"value": toleration,
	}} with input as request([{"key": "sandbox"}, toleration])
}

test_denies_without_parameters if {
	count(tolerations.deny) == 1 with input as object.remove(request([{"key": "sandbox"}]), ["parameters"])
}

test_allows[note] if {
	some note, value in {"listed": [{"key": "sandbox", "operator": "Exists"}], "empty": [], "null": null}
	count(tolerations.deny) == 0 with input as request(value)
}

test_allows_the_plain_sandbox if {
	count(tolerations.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.pod_with({"tolerations": [{}]}), {}), kind, path)
	fixtures.fields(tolerations.deny) == {"template.spec.podTemplate.spec.tolerations[0]"} with input as request
}
