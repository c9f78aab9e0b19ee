package policies.library.warmpool_strategy_test

import data.policies.library.warmpool_strategy

pool(spec) := {"kind": "SandboxWarmPool", "object": {"spec": spec}, "parameters": {"allowed": ["RollingUpdate"]}}

test_denies[note] if {
	some note, case in {
		"absent": [{}, "OnReplenish"],
		"null": [{"updateStrategy": null}, "OnReplenish"],
		"no type": [{"updateStrategy": {}}, "OnReplenish"],
		"type null": [{"updateStrategy": {"type": null}}, "OnReplenish"],
		"type empty": [{"updateStrategy": {"type": ""}}, "OnReplenish"],
		"named": [{"updateStrategy": {"type": "OnReplenish"}}, "OnReplenish"],
		"not listed": [{"updateStrategy": {"type": "Recreate"}}, "Recreate"],
	}
	warmpool_strategy.deny == {{
		"message": sprintf("Sandboxes of an older template are handed out: the strategy is %s", [case[1]]),
		"field": "spec.updateStrategy.type",
		"value": case[1],
	}} with input as pool(case[0])
}

test_denies_without_parameters if {
	count(warmpool_strategy.deny) == 1 with input as object.remove(pool({"updateStrategy": {"type": "RollingUpdate"}}), ["parameters"])
}

test_allows if {
	count(warmpool_strategy.deny) == 0 with input as pool({"updateStrategy": {"type": "RollingUpdate"}})
}
