package policies.library.apparmor_test

import data.lib.fixtures
import data.policies.library.apparmor

profile(list, value) := fixtures.configured(
	fixtures.with_container(list, {"securityContext": {"appArmorProfile": value}}),
	{"allowedLocalhost": ["ours"]},
)

annotated(value) := object.union(fixtures.configured(fixtures.plain, {"allowedLocalhost": ["ours"]}), {"pod": {"metadata": {"annotations": {
	"container.apparmor.security.beta.kubernetes.io/main": value,
	"example.com/a": "unconfined",
}}}})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	apparmor.deny == {{
		"message": "the AppArmor profile is neither that of the runtime nor an allowed one",
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.appArmorProfile", [list]),
		"value": {"type": "Localhost", "localhostProfile": "theirs"},
	}} with input as profile(list, {"type": "Localhost", "localhostProfile": "theirs"})
}

test_denies_for_the_pod if {
	spec := fixtures.pod_with({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}})
	fixtures.fields(apparmor.deny) == {"spec.podTemplate.spec.securityContext.appArmorProfile"} with input as fixtures.sandbox(spec)
}

test_denies_what_is_not_known[note] if {
	some note, value in {"no type": {}, "text": "x", "null type": {"type": null}, "other profile": {"type": "Localhost", "localhostProfile": "theirs"}, "a listed name of another type": {"type": "Unconfined", "localhostProfile": "ours"}}
	count(apparmor.deny) == 1 with input as profile("containers", value)
}

test_denies_the_annotation[note] if {
	some note, value in {"unconfined": "unconfined", "other profile": "localhost/theirs", "empty": "", "null": null}
	apparmor.deny == {{
		"message": "the AppArmor profile is neither that of the runtime nor an allowed one",
		"field": "spec.podTemplate.metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]",
		"value": value,
	}} with input as annotated(value)
}

test_allows[note] if {
	some note, value in {"default": {"type": "RuntimeDefault"}, "listed": {"type": "Localhost", "localhostProfile": "ours"}, "null": null}
	count(apparmor.deny) == 0 with input as profile("containers", value)
}

test_allows_the_annotation[value] if {
	some value in ["runtime/default", "localhost/ours"]
	count(apparmor.deny) == 0 with input as annotated(value)
}

test_allows_the_plain_sandbox if {
	count(apparmor.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"securityContext": {"appArmorProfile": {}}}), {}), kind, path)
	fixtures.fields(apparmor.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.appArmorProfile"} with input as request
}

test_denies_the_annotation_that_a_claim_adds if {
	key := "container.apparmor.security.beta.kubernetes.io/main"
	given := {"kind": "SandboxClaim", "object": {"spec": {"additionalPodMetadata": {"annotations": {key: "unconfined"}}}}, "parameters": {}}
	fixtures.fields(apparmor.deny) == {sprintf("spec.additionalPodMetadata.annotations[%s]", [key])} with input as given
}
