package policies.library.do_not_evict_test

import data.lib.fixtures
import data.policies.library.do_not_evict

evict := "cluster-autoscaler.kubernetes.io/safe-to-evict"

request(annotations) := object.union(fixtures.configured(fixtures.plain, {"allowed": ["karpenter.sh/do-not-evict"]}), {"pod": {"metadata": {"annotations": annotations}}})

test_denies[key] if {
	some key, value in {evict: "false", "karpenter.sh/do-not-disrupt": "true"}
	do_not_evict.deny == {{
		"message": "the Pod keeps its node from being emptied",
		"field": sprintf("spec.podTemplate.metadata.annotations[%s]", [key]),
		"value": value,
	}} with input as request({key: value})
}

test_denies_what_nobody_knows[value] if {
	some value in ["", "no", "False", null]
	count(do_not_evict.deny) == 1 with input as request({evict: value})
}

test_denies_what_a_claim_adds if {
	given := {"kind": "SandboxClaim", "object": {"spec": {"additionalPodMetadata": {"annotations": {evict: "false"}}}}, "parameters": {}}
	fixtures.fields(do_not_evict.deny) == {sprintf("spec.additionalPodMetadata.annotations[%s]", [evict])} with input as given
}

test_denies_without_parameters if {
	count(do_not_evict.deny) == 1 with input as object.remove(request({"karpenter.sh/do-not-evict": "true"}), ["parameters"])
}

test_allows[note] if {
	some note, annotations in {"listed": {"karpenter.sh/do-not-evict": "true"}, "harmless": {evict: "true", "karpenter.sh/do-not-disrupt": "false"}, "another": {"a": "false"}, "empty": {}, "null": null}
	count(do_not_evict.deny) == 0 with input as request(annotations)
}

test_allows_the_older_key_that_says_no if {
	count(do_not_evict.deny) == 0 with input as object.union(request({"karpenter.sh/do-not-evict": "false"}), {"parameters": {"allowed": []}})
}
