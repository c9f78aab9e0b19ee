package policies.library.claim_env_test

import data.policies.library.claim_env

claim(variables) := {
	"object": {"spec": {"env": variables}},
	"parameters": {"denyNames": ["PATH", "LD_*"], "allowNames": ["LD_DEBUG"]},
}

test_denies[name] if {
	some name in ["PATH", "LD_PRELOAD", "LD_"]
	claim_env.deny == {{
		"message": sprintf("the variable %q can take over the container", [name]),
		"field": "spec.env[1].name",
		"value": name,
	}} with input as claim([{"name": "MODE", "value": "a"}, {"name": name, "value": "a"}])
}

test_denies_what_is_set_twice if {
	claim_env.deny == {{
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

test_without_parameters_every_name_is_allowed if {
	count(claim_env.deny) == 0 with input as object.remove(claim([{"name": "PATH"}]), ["parameters"])
}
