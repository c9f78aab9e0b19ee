package policies.library.namespace_psa_test

import data.policies.library.namespace_psa

request(labels, level) := {"namespace": {"name": "team", "labels": labels}, "parameters": {"level": level}}

labelled(level) := {"pod-security.kubernetes.io/enforce": level}

test_denies[note] if {
	some note, case in {
		"none": [{}, "baseline", ""],
		"another label": [{"pod-security.kubernetes.io/warn": "restricted"}, "baseline", ""],
		"privileged": [labelled("privileged"), "baseline", "privileged"],
		"less": [labelled("baseline"), "restricted", "baseline"],
		"misspelt": [labelled("Restricted"), "restricted", "Restricted"],
	}
	namespace_psa.deny == {{
		"message": "the namespace does not enforce the Pod Security Standards",
		"field": "metadata.namespace",
		"value": case[2],
	}} with input as request(case[0], case[1])
}

test_denies_a_namespace_that_nobody_told_of if {
	count(namespace_psa.deny) == 1 with input as {"parameters": {"level": "baseline"}}
}

test_denies_without_parameters if {
	count(namespace_psa.deny) == 1 with input as object.remove(request(labelled("restricted"), "baseline"), ["parameters"])
}

test_allows[note] if {
	some note, case in {"the least": ["baseline", "baseline"], "more": ["restricted", "baseline"], "the most": ["restricted", "restricted"]}
	count(namespace_psa.deny) == 0 with input as request(labelled(case[0]), case[1])
}
