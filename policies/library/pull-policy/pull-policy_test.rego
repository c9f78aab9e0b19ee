package policies.library.pull_policy_test

import data.lib.fixtures
import data.policies.library.pull_policy

pulled(list, image, policy) := fixtures.sandbox(object.union(
	{"containers": []},
	{list: [object.union(fixtures.container, {"image": image, "imagePullPolicy": policy})]},
))

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	fixtures.said(pull_policy.deny) == {{
		"message": `container "main" may run an image that the node kept`,
		"field": sprintf("spec.podTemplate.spec.%s[0].imagePullPolicy", [list]),
		"value": "IfNotPresent",
	}} with input as pulled(list, "python:3.12", "IfNotPresent")
}

test_denies[note] if {
	some note, case in {"absent": ["a:1", null], "empty": ["a:1", ""], "never": ["a:1", "Never"], "latest kept": ["a:latest", "Never"], "unknown": ["a", "always"]}
	count(pull_policy.deny) == 1 with input as pulled("containers", case[0], case[1])
}

test_allows[note] if {
	some note, case in {
		"always": ["a:1", "Always"],
		"latest": ["a:latest", null],
		"no tag": ["a", ""],
		"digest": ["a:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "Never"],
		"no image": ["Not An Image", "Never"],
	}
	count(pull_policy.deny) == 0 with input as pulled("containers", case[0], case[1])
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.configured(fixtures.plain, {}), kind, path)
	fixtures.fields(pull_policy.deny) == {"template.spec.podTemplate.spec.containers[0].imagePullPolicy"} with input as request
}

mounted(image) := fixtures.sandbox({"containers": [], "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "a", "image": image}]})

test_denies_a_volume[note] if {
	some note, case in {"absent": [{"reference": "a:1"}, "IfNotPresent"], "null": [{"reference": "a:1", "pullPolicy": null}, "IfNotPresent"], "never": [{"reference": "a", "pullPolicy": "Never"}, "Never"]}
	fixtures.said(pull_policy.deny) == {{
		"message": `volume "a" may hold an image that the node kept`,
		"field": "spec.podTemplate.spec.volumes[1].image.pullPolicy",
		"value": case[1],
	}} with input as mounted(case[0])
}

test_allows_a_volume[note] if {
	some note, image in {"pulled again": {"reference": "a:1", "pullPolicy": "Always"}, "without a tag": {"reference": "a"}, "by digest": {"reference": "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}
	count(pull_policy.deny) == 0 with input as mounted(image)
}
