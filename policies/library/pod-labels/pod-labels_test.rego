package policies.library.pod_labels_test

import data.lib.fixtures
import data.policies.library.pod_labels

template(values) := object.union(fixtures.configured(fixtures.plain, {"reserved": ["app=sandbox-router", "mesh.example.com/inject"]}), {"pod": {"metadata": {"labels": values}}})

test_denies[key] if {
	some key, value in {"app": "sandbox-router", "mesh.example.com/inject": "false"}
	pod_labels.deny == {{
		"message": sprintf("the label %s is reserved", [key]),
		"field": sprintf("spec.podTemplate.metadata.labels[%s]", [key]),
		"value": value,
	}} with input as template({key: value, "team": "a"})
}

test_denies_a_claim if {
	fixtures.fields(pod_labels.deny) == {"spec.additionalPodMetadata.labels[app]"} with input as {
		"object": {"spec": {"additionalPodMetadata": {"labels": {"app": "sandbox-router"}}}},
		"parameters": {"reserved": ["app=sandbox-router"]},
	}
}

test_allows[note] if {
	some note, values in {"another value": {"app": "agent"}, "another key": {"application": "sandbox-router"}, "empty": {}, "null": null}
	count(pod_labels.deny) == 0 with input as template(values)
}

test_denies_a_key_without_a_domain if {
	given := object.union(template({"team": "a", "example.com/team": "b"}), {"parameters": {"reserved": [], "requireDomain": true}})
	pod_labels.deny == {{
		"message": "the label team has no domain",
		"field": "spec.podTemplate.metadata.labels[team]",
		"value": "a",
	}} with input as given
	count(pod_labels.deny) == 0 with input as object.union(given, {"parameters": {"requireDomain": false}})
}
