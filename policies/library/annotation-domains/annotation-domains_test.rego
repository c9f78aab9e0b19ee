package policies.library.annotation_domains_test

import data.lib.fixtures
import data.policies.library.annotation_domains

template(values) := object.union(fixtures.configured(fixtures.plain, {"allowedDomains": ["example.com"]}), {"pod": {"metadata": {"annotations": values}}})

test_denies[key] if {
	some key in ["k8s.v1.cni.cncf.io/networks", "badexample.com/a", "example.com.evil.com/a", "com/a"]
	fixtures.said(annotation_domains.deny) == {{
		"message": sprintf("annotations of %s are not allowed", [split(key, "/")[0]]),
		"field": sprintf("spec.podTemplate.metadata.annotations[%s]", [key]),
		"value": split(key, "/")[0],
	}} with input as template({key: "x", "example.com/a": "y"})
}

test_denies_a_claim if {
	fixtures.fields(annotation_domains.deny) == {"spec.additionalPodMetadata.annotations[a.b/c]"} with input as {
		"object": {"spec": {"additionalPodMetadata": {"annotations": {"a.b/c": "x"}}}},
		"parameters": {"allowedDomains": ["example.com"]},
	}
}

test_denies_without_parameters if {
	count(annotation_domains.deny) == 1 with input as object.remove(template({"example.com/a": "x"}), ["parameters"])
}

test_allows[note] if {
	some note, values in {"listed": {"example.com/a": "x"}, "below": {"team.example.com/a": "x"}, "no domain": {"note": "x"}, "backwards": {"com.example.team.note": "x"}, "empty": {}, "null": null}
	count(annotation_domains.deny) == 0 with input as template(values)
}

test_denies_domains_written_backwards[key] if {
	some key, domain in {"dev.gvisor.spec.mount.a.share": "dev.gvisor", "com.example": "com.example", "example.com": "example.com"}
	given := object.union(template({key: "x", "com.example.a": "y"}), {"parameters": {"allowedDomains": ["a.example.com"]}})
	fixtures.said(annotation_domains.deny) == {{
		"message": sprintf("annotations of %s are not allowed", [domain]),
		"field": sprintf("spec.podTemplate.metadata.annotations[%s]", [key]),
		"value": domain,
	}} with input as given
}

test_denies_those_of_volume_claims if {
	fixtures.fields(annotation_domains.deny) == {
		"spec.volumeClaimTemplates[0].metadata.annotations[trident.netapp.io/cloneFromPVC]",
		"spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[a.b/c]",
	} with input as {
		"object": {"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": {"trident.netapp.io/cloneFromPVC": "x", "example.com/a": "y"}}}]}},
		"pod": {"spec": {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a.b/c": "x"}}}}}]}},
		"parameters": {"allowedDomains": ["example.com"]},
	}
}
