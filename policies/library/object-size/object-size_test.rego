package policies.library.object_size_test

import data.lib.fixtures
import data.policies.library.object_size

limits := {"maxContainers": 2, "maxVolumes": 1, "maxEnv": 2, "maxAnnotationBytes": 10, "maxCommandBytes": 10}

request(spec) := fixtures.configured(spec, limits)

test_denies_containers_of_all_lists_together if {
	fixtures.said(object_size.deny) == {{
		"message": "there are 3 containers, at most 2 are allowed",
		"field": "spec.podTemplate.spec.containers",
		"value": 3,
	}} with input as request({list: [fixtures.container] | some list in fixtures.lists})
}

test_denies_volumes if {
	fixtures.said(object_size.deny) == {{
		"message": "there are 2 volumes, at most 1 are allowed",
		"field": "spec.podTemplate.spec.volumes",
		"value": 2,
	}} with input as request(fixtures.with_volumes([{"name": "a"}, {"name": "b"}]))
}

test_denies_variables_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(object_size.deny) == {{
		"message": "there are 3 environment variables, at most 2 are allowed",
		"field": sprintf("spec.podTemplate.spec.%s[0].env", [list]),
		"value": 3,
	}} with input as request({list: [{"env": [{}, {}, {}]}]})
}

test_denies_annotations if {
	fixtures.said(object_size.deny) == {{
		"message": "there are 11 bytes of annotations, at most 10 are allowed",
		"field": "spec.podTemplate.metadata.annotations",
		"value": 11,
	}} with input as object.union(request({}), {"pod": {"metadata": {"annotations": {"a": "12345", "b": "1234"}}}})
}

test_denies_commands if {
	fixtures.said(object_size.deny) == {{
		"message": "there are 11 bytes of commands, at most 10 are allowed",
		"field": "spec.podTemplate.spec.containers",
		"value": 11,
	}} with input as request({"containers": [{"command": ["123", "45"]}, {"args": ["678", "901"]}]})
}

test_denies_without_parameters if {
	spec := {"containers": [{"env": [{}], "command": ["a"]}], "volumes": [{}]}
	given := object.union(fixtures.sandbox(spec), {"pod": {"metadata": {"annotations": {"a": ""}}}})
	{[finding.field, finding.message] | some finding in object_size.deny} == {
		["spec.podTemplate.metadata.annotations", "there are 1 bytes of annotations, at most 0 are allowed"],
		["spec.podTemplate.spec.containers", "there are 1 containers, at most 0 are allowed"],
		["spec.podTemplate.spec.containers", "there are 1 bytes of commands, at most 0 are allowed"],
		["spec.podTemplate.spec.containers[0].env", "there are 1 environment variables, at most 0 are allowed"],
		["spec.podTemplate.spec.volumes", "there are 1 volumes, at most 0 are allowed"],
	} with input as object.remove(given, ["parameters"])
}

test_allows_the_most if {
	spec := {"containers": [{"env": [{}, {}], "command": ["12345"], "args": ["67890"]}, {}], "volumes": [{}]}
	count(object_size.deny) == 0 with input as object.union(request(spec), {"pod": {"metadata": {"annotations": {"a": "123456789"}}}})
}

test_allows_null if {
	count(object_size.deny) == 0 with input as request({"containers": [{"env": null, "command": null}], "volumes": null})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_volumes([{}]), {"maxVolumes": 0}), kind, path)
	fixtures.fields(object_size.deny) == {"template.spec.podTemplate.spec.volumes"} with input as request
}
