package policies.library.hostpath_test

import data.lib.fixtures
import data.policies.library.hostpath

test_denies if {
	fixtures.said(hostpath.deny) == {{
		"message": `volume "host" mounts a path of the node`,
		"field": "spec.podTemplate.spec.volumes[1].hostPath",
		"value": "/etc",
	}} with input as fixtures.sandbox(fixtures.with_volumes([
		{"name": "tmp", "emptyDir": {}},
		{"name": "host", "hostPath": {"path": "/etc"}},
	]))
}

test_denies_whatever_its_value[note] if {
	some note, source in {"empty": {}, "string": "/etc", "no path": {"type": "Directory"}, "path null": {"path": null}}
	count(hostpath.deny) == 1 with input as fixtures.sandbox(fixtures.with_volumes([{"name": "host", "hostPath": source}]))
}

test_denies_beside_another_source if {
	count(hostpath.deny) == 1 with input as fixtures.sandbox(fixtures.with_volumes([{"name": "a", "configMap": {"name": "a"}, "hostPath": {"path": "/"}}]))
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	request := fixtures.as_kind(fixtures.sandbox(fixtures.with_volumes([{"hostPath": {"path": "/"}}])), kind, path)
	fixtures.fields(hostpath.deny) == {"template.spec.podTemplate.spec.volumes[0].hostPath"} with input as request
}

test_allows[note] if {
	some note, volumes in {
		"other source": [{"name": "tmp", "emptyDir": {}}],
		"null source": [{"name": "tmp", "emptyDir": {}, "hostPath": null}],
		"null member": [null],
		"empty": [],
		"null": null,
	}
	count(hostpath.deny) == 0 with input as fixtures.sandbox(fixtures.with_volumes(volumes))
}
