package policies.library.template_vct_injection_test

import data.policies.library.template_vct_injection

template(value) := {"object": {"spec": {"volumeClaimTemplatesPolicy": value}}, "parameters": {"allowedModes": ["Allowed"]}}

test_denies[value] if {
	some value in ["Overrides", "allowed", 7]
	count(template_vct_injection.deny) == 1 with input as template(value)
}

test_says_what_is_wrong if {
	template_vct_injection.deny == {{
		"message": "claims may bring volumes: the mode is Overrides",
		"field": "spec.volumeClaimTemplatesPolicy",
		"value": "Overrides",
	}} with input as template("Overrides")
}

test_denies_without_parameters if {
	count(template_vct_injection.deny) == 1 with input as object.remove(template("Allowed"), ["parameters"])
}

test_allows[note] if {
	some note, value in {"listed": "Allowed", "default": "Disallowed", "empty": "", "null": null}
	count(template_vct_injection.deny) == 0 with input as template(value)
}

test_allows_what_is_absent if {
	count(template_vct_injection.deny) == 0 with input as {"object": {"spec": {}}}
}

test_warns_of_what_is_allowed[note] if {
	some note, case in {"warned of": [["Allowed"], 1], "not": [["Overrides"], 0]}
	given := object.union(template("Allowed"), {"parameters": {"warnedModes": case[0]}})
	count(template_vct_injection.warn) == case[1] with input as given
	count(template_vct_injection.deny) == 0 with input as given
}

test_warns_of_nothing_that_is_refused if {
	count(template_vct_injection.warn) == 0 with input as object.union(template("Overrides"), {"parameters": {"warnedModes": ["Overrides"]}})
}
