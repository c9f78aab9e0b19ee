package policies.library.read_only_rootfs_test

import data.lib.fixtures
import data.policies.library.read_only_rootfs

request(list, fields) := fixtures.configured({list: [object.union({"name": "main", "image": "team/agent:1"}, fields)]}, {"exemptImages": ["docker.io/library", "docker.io/team/tool"]})

test_denies_in_every_list[list] if {
	some list in fixtures.lists
	read_only_rootfs.deny == {{
		"message": `container "main" can write to its root file system`,
		"field": sprintf("spec.podTemplate.spec.%s[0].securityContext.readOnlyRootFilesystem", [list]),
		"value": "",
	}} with input as request(list, {})
}

test_denies[note] if {
	some note, case in {"false": [false, false], "null": [null, ""], "text": ["true", "true"]}
	some finding in read_only_rootfs.deny with input as request("containers", {"securityContext": {"readOnlyRootFilesystem": case[0]}})
	finding.value == case[1]
}

test_denies_other_images[image] if {
	some image in ["team/tools:1", "example.com/library/python", "Team/tool", ""]
	count(read_only_rootfs.deny) == 1 with input as request("containers", {"image": image})
}

test_denies_without_parameters if {
	count(read_only_rootfs.deny) == 1 with input as object.remove(request("containers", {"image": "python"}), ["parameters"])
}

test_allows if {
	count(read_only_rootfs.deny) == 0 with input as request("containers", {"securityContext": {"readOnlyRootFilesystem": true}})
}

test_allows_exempt_images[image] if {
	some image in ["python", "python:3.12@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "team/tool:1", "team/tool/sub"]
	count(read_only_rootfs.deny) == 0 with input as request("containers", {"image": image})
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(read_only_rootfs.deny) == {"template.spec.podTemplate.spec.containers[0].securityContext.readOnlyRootFilesystem"} with input as fixtures.as_kind(request("containers", {}), kind, path)
}
