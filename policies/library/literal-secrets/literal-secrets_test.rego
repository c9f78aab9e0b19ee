package policies.library.literal_secrets_test

import data.lib.fixtures
import data.policies.library.literal_secrets

parameters := {"namePattern": "(?i)(?:^|_)(?:TOKEN|API_?KEY)$", "valuePatterns": [`\bAKIA[0-9A-Z]{4}\b`, "BEGIN|END"]}

request(list, variable) := fixtures.configured(fixtures.with_container(list, {"env": [{"name": "MODE", "value": "agent"}, variable]}), parameters)

claim(variables, pod_variables) := object.union(
	fixtures.as_kind(fixtures.configured(fixtures.with_container("containers", {"env": pod_variables}), parameters), "SandboxClaim", "template.spec.podTemplate"),
	{"object": {"kind": "SandboxClaim", "spec": {"env": variables}}},
)

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(literal_secrets.deny) == {{
		"message": `the value of the variable "TOKEN" is written into the manifest`,
		"field": sprintf("spec.podTemplate.spec.%s[0].env[1].value", [list]),
		"value": "TOKEN",
	}} with input as request(list, {"name": "TOKEN", "value": "abc"})
}

test_denies_by_name[name] if {
	some name in ["MY_TOKEN", "API_KEY", "openai_apikey"]
	fixtures.fields(literal_secrets.deny) == {"spec.podTemplate.spec.containers[0].env[1].value"} with input as request("containers", {"name": name, "value": "$(A)b"})
}

test_denies_by_value[value] if {
	some value in ["AKIA1234", "https://AKIA1234@example.com", "BEGIN", "the END"]
	fixtures.said(literal_secrets.deny) == {{
		"message": `the value of the variable "URL" is written into the manifest`,
		"field": "spec.podTemplate.spec.containers[0].env[1].value",
		"value": "URL",
	}} with input as request("containers", {"name": "URL", "value": value})
}

test_denies_a_value_without_a_name[note] if {
	some note, variable in {"absent": {"value": "AKIA1234"}, "null": {"name": null, "value": "AKIA1234"}}
	some finding in literal_secrets.deny with input as request("containers", variable)
	finding.value == ""
}

test_denies_a_number_as_token if {
	count(literal_secrets.deny) == 1 with input as request("containers", {"name": "TOKEN", "value": 1234})
}

test_allows[note] if {
	some note, variable in {
		"a word within": {"name": "MAX_TOKENS", "value": "4096"},
		"in the middle": {"name": "TOKEN_FILE", "value": "/run/token"},
		"without its border": {"name": "MYTOKEN", "value": "a"},
		"empty": {"name": "TOKEN", "value": ""},
		"null": {"name": "TOKEN", "value": null},
		"from elsewhere": {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
		"of another variable": {"name": "TOKEN", "value": "$(OTHER)"},
		"longer": {"name": "URL", "value": "AKIA12345"},
		"no object": "TOKEN=abc",
	}
	count(literal_secrets.deny) == 0 with input as request("containers", variable)
}

test_denies_what_a_claim_brings_once if {
	fixtures.said(literal_secrets.deny) == {{
		"message": `the value of the variable "TOKEN" is written into the manifest`,
		"field": "spec.env[1].value",
		"value": "TOKEN",
	}} with input as claim([{"name": "MODE", "value": "a"}, {"name": "TOKEN", "value": "abc"}], [{"name": "MODE", "value": "a"}, {"name": "TOKEN", "value": "abc"}])
}

test_denies_what_a_claim_brings_by_its_value[value] if {
	some value in ["AKIA1234", "a AKIA1234 b"]
	fixtures.fields(literal_secrets.deny) == {"spec.env[0].value"} with input as claim([{"name": "URL", "value": value}], [])
}

test_denies_what_the_template_has[note] if {
	some note, own in {"nothing": [], "another": [{"name": "OTHER", "value": "abc"}], "another value": [{"name": "TOKEN", "value": ""}], "null": null}
	fixtures.fields(literal_secrets.deny) == {"template.spec.podTemplate.spec.containers[0].env[0].value"} with input as claim(own, [{"name": "TOKEN", "value": "abc"}])
}

test_without_patterns_names_count if {
	given := object.union(request("containers", {"name": "TOKEN", "value": "abc"}), {"parameters": {"valuePatterns": []}})
	count(literal_secrets.deny) == 1 with input as given
	other := object.union(request("containers", {"name": "URL", "value": "abc"}), {"parameters": {"valuePatterns": []}})
	count(literal_secrets.deny) == 0 with input as other
}

test_without_parameters_nothing_is_known if {
	count(literal_secrets.deny) == 0 with input as object.remove(request("containers", {"name": "TOKEN", "value": "abc"}), ["parameters"])
}

test_never_shows_the_value if {
	findings := literal_secrets.deny with input as request("containers", {"name": "TOKEN", "value": "AKIA1234"})
	count(findings) == 1
	not contains(json.marshal(fixtures.said(findings)), "AKIA")
}

test_one_pattern_is_enough if {
	given := object.union(request("containers", {"name": "URL", "value": "END"}), {"parameters": {"valuePatterns": ["END"]}})
	count(literal_secrets.deny) == 1 with input as given
}
