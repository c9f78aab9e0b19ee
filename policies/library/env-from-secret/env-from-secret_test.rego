package policies.library.env_from_secret_test

import data.lib.fixtures
import data.policies.library.env_from_secret

request(list, fields) := fixtures.configured(fixtures.with_container(list, fields), {"allowedNames": ["shared"], "allowFiles": false})

variable(source) := {"env": [{"name": "MODE", "value": "a"}, {"name": "KEY", "valueFrom": source}]}

test_denies_a_variable_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(env_from_secret.deny) == {{
		"message": `container "main" takes variables from the Secret "keys"`,
		"field": sprintf("spec.podTemplate.spec.%s[0].env[1].valueFrom.secretKeyRef", [list]),
		"value": "keys",
	}} with input as request(list, variable({"secretKeyRef": {"name": "keys", "key": "a"}}))
}

test_denies_a_whole_secret_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(env_from_secret.deny) == {{
		"message": `container "main" takes variables from the Secret "keys"`,
		"field": sprintf("spec.podTemplate.spec.%s[0].envFrom[1].secretRef", [list]),
		"value": "keys",
	}} with input as request(list, {"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "keys", "optional": true}}]})
}

test_denies_a_file_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(env_from_secret.deny) == {{
		"message": `container "main" takes a variable from a file`,
		"field": sprintf("spec.podTemplate.spec.%s[0].env[1].valueFrom.fileKeyRef", [list]),
		"value": "shared",
	}} with input as request(list, variable({"fileKeyRef": {"volumeName": "shared", "path": "a", "key": "a"}}))
}

test_denies_a_reference_without_a_name[note] if {
	some note, reference in {"absent": {"key": "a"}, "null": {"name": null}, "empty": {"name": ""}, "no object": "keys"}
	some finding in env_from_secret.deny with input as request("containers", variable({"secretKeyRef": reference}))
	finding.value == ""
}

test_denies_without_parameters[note] if {
	some note, source in {"secret": {"secretKeyRef": {"name": "shared"}}, "file": {"fileKeyRef": {}}}
	count(env_from_secret.deny) == 1 with input as object.remove(request("containers", variable(source)), ["parameters"])
}

test_allows[note] if {
	some note, fields in {
		"listed": variable({"secretKeyRef": {"name": "shared", "key": "a"}}),
		"a whole one listed": {"envFrom": [{"secretRef": {"name": "shared"}}]},
		"null": variable({"secretKeyRef": null, "fileKeyRef": null}),
		"source null": variable(null),
		"a whole one null": {"envFrom": [{"secretRef": null}]},
		"of a ConfigMap": variable({"configMapKeyRef": {"name": "keys", "key": "a"}}),
		"none": {"env": null, "envFrom": []},
	}
	count(env_from_secret.deny) == 0 with input as request("containers", fields)
}

test_allows_files_where_they_may_be if {
	count(env_from_secret.deny) == 0 with input as object.union(request("containers", variable({"fileKeyRef": {"volumeName": "a"}})), {"parameters": {"allowFiles": true}})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(env_from_secret.deny) == {"template.spec.podTemplate.spec.containers[0].envFrom[0].secretRef"} with input as fixtures.as_kind(request("containers", {"envFrom": [{"secretRef": {"name": "keys"}}]}), kind, path)
}
