package policies.library.seccomp_test

import data.lib.fixtures
import data.policies.library.seccomp

changed(list, pod, value) := fixtures.configured(
	object.union(
		fixtures.with_container(list, {"securityContext": {"seccompProfile": value}}),
		{"securityContext": {"seccompProfile": pod}},
	),
	{"allowedLocalhost": ["ours.json"]},
)

test_denies_in_every_list[list] if {
	some list in ["initContainers", "ephemeralContainers"]
	spec := {list: [fixtures.container], "containers": []}
	seccomp.deny == {{
		"message": `container "main" has no seccomp profile of the runtime`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.seccompProfile", [list]),
		"value": "",
	}} with input as fixtures.sandbox(spec)
}

test_denies[note] if {
	some note, values in {
		"unconfined over the default": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}],
		"neither": [null, null],
		"another profile": [null, {"type": "Localhost", "localhostProfile": "theirs.json"}],
		"a listed one of another type": [null, {"type": "Unconfined", "localhostProfile": "ours.json"}],
		"text": [null, "RuntimeDefault"],
		"empty": [{"type": "RuntimeDefault"}, {}],
	}
	fixtures.fields(seccomp.deny) == {"spec.podTemplate.spec.containers[0].securityContext.seccompProfile"} with input as changed("containers", values[0], values[1])
}

test_allows[note] if {
	some note, values in {
		"the Pod's": [{"type": "RuntimeDefault"}, null],
		"its own": [{"type": "Unconfined"}, {"type": "RuntimeDefault"}],
		"a listed one": [null, {"type": "Localhost", "localhostProfile": "ours.json"}],
	}
	count(seccomp.deny) == 0 with input as changed("containers", values[0], values[1])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(seccomp.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.seccompProfile"} with input as request
}
