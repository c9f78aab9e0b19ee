package policies.library.dra_test

import data.lib.fixtures
import data.policies.library.dra

claiming(claims) := fixtures.pod_with({"resourceClaims": claims})

test_denies if {
	fixtures.said(dra.deny) == {{
		"message": "the Sandbox asks for a device by resource claim",
		"field": "spec.podTemplate.spec.resourceClaims[0]",
		"value": "gpu",
	}} with input as fixtures.sandbox(claiming([{"name": "a", "resourceClaimTemplateName": "gpu"}]))
}

test_denies_whatever_it_names[note] if {
	some note, claim in {"a claim": {"resourceClaimName": "gpu"}, "nothing": {"name": "a"}, "null": null, "string": "x"}
	count(dra.deny) == 1 with input as fixtures.sandbox(claiming([claim]))
}

test_denies_beyond_the_parameters[note] if {
	some note, claim in {
		"other template": {"resourceClaimTemplateName": "gpu2"},
		"a claim of that name": {"resourceClaimName": "gpu"},
		"both": {"resourceClaimTemplateName": "gpu", "resourceClaimName": "x"},
	}
	count(dra.deny) == 1 with input as fixtures.configured(claiming([claim]), {"allowedTemplates": ["gpu"]})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(claiming([{}])), kind, path)
	fixtures.fields(dra.deny) == {"template.spec.podTemplate.spec.resourceClaims[0]"} with input as request
}

test_allows_a_listed_template if {
	count(dra.deny) == 0 with input as fixtures.configured(claiming([{"resourceClaimTemplateName": "gpu"}]), {"allowedTemplates": ["gpu"]})
}

test_allows[note] if {
	some note, claims in {"empty": [], "null": null}
	count(dra.deny) == 0 with input as fixtures.sandbox(claiming(claims))
}

test_names_the_claim_or_the_template[note] if {
	some note, case in {"claim": [{"resourceClaimName": "a"}, "a"], "template": [{"resourceClaimTemplateName": "b"}, "b"], "neither": [{}, ""]}
	some finding in dra.deny with input as fixtures.sandbox(fixtures.pod_with({"resourceClaims": [case[0]]}))
	finding.value == case[1]
}

test_who_uses_a_claim if {
	spec := {
		"resourceClaims": [{"name": "d", "resourceClaimName": "x"}, {"resourceClaimName": "y"}],
		"containers": [{"name": "a", "resources": {"claims": [{"name": "d", "request": "r"}, {"name": "e"}]}}, {"name": "b", "resources": {"claims": [{"name": "d"}]}}],
	}
	{finding.value: finding.content | some finding in dra.deny} == {
		"x": {{"name": "d", "resourceClaimName": "x"}, ["a", {"name": "d", "request": "r"}], ["b", {"name": "d"}]},
		"y": {{"resourceClaimName": "y"}},
	} with input as fixtures.sandbox(spec)
}
