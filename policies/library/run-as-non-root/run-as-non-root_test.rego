package policies.library.run_as_non_root_test

import data.lib.fixtures
import data.policies.library.run_as_non_root

changed(list, pod, value) := fixtures.sandbox(object.union(
	fixtures.with_container(list, {"securityContext": {"runAsNonRoot": value}}),
	{"securityContext": {"runAsNonRoot": pod}},
))

test_denies_in_every_list[list] if {
	some list in ["initContainers", "ephemeralContainers"]
	spec := {list: [fixtures.container], "containers": []}
	fixtures.said(run_as_non_root.deny) == {{
		"message": `container "main" may run as root`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.runAsNonRoot", [list]),
		"value": "",
	}} with input as fixtures.sandbox(spec)
}

test_denies[note] if {
	some note, values in {"false over true": [true, false], "neither": [null, null], "text": [null, "true"], "false of the Pod": [false, null]}
	fixtures.fields(run_as_non_root.deny) == {"spec.podTemplate.spec.containers[0].securityContext.runAsNonRoot"} with input as changed("containers", values[0], values[1])
}

test_allows[note] if {
	some note, values in {"the Pod's": [true, null], "its own": [null, true], "true over false": [false, true]}
	count(run_as_non_root.deny) == 0 with input as changed("containers", values[0], values[1])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(run_as_non_root.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.runAsNonRoot"} with input as request
}

test_exempts_runtime_classes if {
	given := fixtures.configured(fixtures.pod_with({"runtimeClassName": "kata"}), {"exemptRuntimeClasses": ["kata"]})
	count(run_as_non_root.deny) == 0 with input as given
	count(run_as_non_root.deny) == 1 with input as object.union(given, {"pod": {"spec": {"runtimeClassName": "gvisor"}}})
	count(run_as_non_root.deny) == 1 with input as object.remove(given, ["parameters"])
}

test_who_is_root_for_certain[note] if {
	some note, case in {
		"nobody said": [{}, {}, set()],
		"the container": [{"runAsUser": 0}, {"runAsUser": 1}, {0}],
		"the container alone": [{"runAsUser": 0}, {}, {0}],
		"the Pod": [{}, {"runAsUser": 0}, {0}],
		"neither": [{"runAsUser": 1}, {"runAsUser": 0}, set()],
	}
	{finding.content | some finding in run_as_non_root.deny} == {case[2]} with input as fixtures.sandbox({"securityContext": case[1], "containers": [{"name": "a", "securityContext": case[0]}]})
}
