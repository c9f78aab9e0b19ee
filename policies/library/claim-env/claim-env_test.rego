package policies.library.claim_env_test

import data.lib.fixtures
import data.policies.library.claim_env

claim(variables) := {
	"object": {"spec": {"env": variables}},
	"parameters": {"denyNames": ["PATH", "LD_*"], "allowNames": ["LD_DEBUG"]},
}

test_denies[name] if {
	some name in ["PATH", "LD_PRELOAD", "LD_"]
	fixtures.said(claim_env.deny) == {{
		"message": sprintf("the variable %q can take over the container", [name]),
		"field": "spec.env[1].name",
		"value": name,
	}} with input as claim([{"name": "MODE", "value": "a"}, {"name": name, "value": "a"}])
}

test_denies_what_is_set_twice if {
	fixtures.said(claim_env.deny) == {{
		"message": `the variable "MODE" is set twice`,
		"field": "spec.env[2].name",
		"value": "MODE",
	}} with input as claim([{"name": "MODE"}, {"name": "OTHER"}, {"name": "MODE"}])
}

test_denies_what_one_container_gets_twice if {
	count(claim_env.deny) == 1 with input as claim([{"name": "MODE", "containerName": "a"}, {"name": "MODE", "containerName": "a"}])
}

test_allows_one_for_each_container if {
	count(claim_env.deny) == 0 with input as claim([{"name": "MODE", "containerName": "a"}, {"name": "MODE", "containerName": "b"}, {"name": "MODE"}])
}

test_allows[note] if {
	some note, variables in {"another": [{"name": "MODE"}], "listed": [{"name": "LD_DEBUG"}], "longer": [{"name": "PATHS"}], "in the middle": [{"name": "MY_LD_A"}], "no name": [{"value": "a"}], "null": null, "empty": []}
	count(claim_env.deny) == 0 with input as claim(variables)
}

test_denies_too_many if {
	given := object.union(claim([{"name": "A"}, {"name": "B"}, {"name": "C"}]), {"parameters": {"maxEntries": 2}})
	fixtures.said(claim_env.deny) == {{
		"message": "there are 3 variables, at most 2 are allowed",
		"field": "spec.env",
		"value": 3,
	}} with input as given
	count(claim_env.deny) == 0 with input as object.union(given, {"parameters": {"maxEntries": 3}})
}

test_denies_too_long_ones if {
	given := object.union(claim([{"name": "é", "value": "abc"}, {"name": "B", "value": "12"}]), {"parameters": {"maxBytes": 7}})
	fixtures.said(claim_env.deny) == {{
		"message": "there are 8 bytes of variables, at most 7 are allowed",
		"field": "spec.env",
		"value": 8,
	}} with input as given
	count(claim_env.deny) == 0 with input as object.union(given, {"parameters": {"maxBytes": 8}})
}

test_without_parameters_every_name_is_allowed if {
	count(claim_env.deny) == 0 with input as object.remove(claim([{"name": "PATH"}]), ["parameters"])
}

test_a_third_is_found_as_the_second_is if {
	twice := {finding.field | some finding in claim_env.deny; contains(finding.message, "set twice")} with input as {"object": {"spec": {"env": [
		{"name": "A"}, {"name": "B"}, {"name": "A", "containerName": null}, {"name": "A", "containerName": ""}, {"name": "B", "containerName": "b"}, "A",
	]}}}
	twice == {"spec.env[2].name", "spec.env[3].name"}
}
