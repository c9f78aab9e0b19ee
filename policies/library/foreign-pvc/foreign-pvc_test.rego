package policies.library.foreign_pvc_test

import data.lib.fixtures
import data.policies.library.foreign_pvc

mounting(claim, kind) := object.union(fixtures.configured(fixtures.with_volumes([{"name": "a", "persistentVolumeClaim": claim}]), {"allowedNames": ["shared-data"]}), {
	"kind": kind,
	"object": {"metadata": {"name": "one"}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "files"}}]}},
})

test_denies[note] if {
	some note, case in {"another": [{"claimName": "files-two"}, "files-two"], "absent": [{}, ""], "text": ["files-one", ""], "begins alike": [{"claimName": "files-one2"}, "files-one2"]}
	fixtures.said(foreign_pvc.deny) == {{
		"message": `volume "a" mounts a claim that is not the Sandbox's own`,
		"field": "spec.podTemplate.spec.volumes[0].persistentVolumeClaim.claimName",
		"value": case[1],
	}} with input as mounting(case[0], "Sandbox")
}

test_denies_in_a_template if {
	count(foreign_pvc.deny) == 1 with input as mounting({"claimName": "files-one"}, "SandboxTemplate")
}

test_denies_without_parameters if {
	count(foreign_pvc.deny) == 1 with input as object.remove(mounting({"claimName": "shared-data"}, "Sandbox"), ["parameters"])
}

test_allows[note] if {
	some note, claim in {"own": {"claimName": "files-one"}, "listed": {"claimName": "shared-data"}, "null": null}
	count(foreign_pvc.deny) == 0 with input as mounting(claim, "Sandbox")
}

test_allows_the_plain_sandbox if {
	count(foreign_pvc.deny) == 0 with input as fixtures.sandbox(fixtures.plain)
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.with_volumes([{"persistentVolumeClaim": {"claimName": "x"}}]), {}), kind, path)
	fixtures.fields(foreign_pvc.deny) == {"template.spec.podTemplate.spec.volumes[0].persistentVolumeClaim.claimName"} with input as request
}
