package policies.library.runtimeclass_backed_test

import data.lib.fixtures
import data.policies.library.runtimeclass_backed

classes := {"gvisor": {"handler": "runsc"}, "fake": {"handler": "runc"}}

request(class) := fixtures.configured(fixtures.pod_with({"runtimeClassName": class}), {"allowedHandlers": ["runsc"]})

test_denies_a_handler_of_the_node if {
	runtimeclass_backed.deny == {{
		"message": `RuntimeClass "fake" runs on the handler "runc", which is not an allowed one`,
		"field": "spec.podTemplate.spec.runtimeClassName",
		"value": "fake",
	}} with input as request("fake") with data.inventory.runtimeclasses as classes
}

test_allows_what_does_not_exist_yet[note] if {
	some note, class in {"missing": "missing", "case": "Fake", "space": "fake ", "number": 7}
	count(runtimeclass_backed.deny) == 0 with input as request(class) with data.inventory.runtimeclasses as classes
}

test_allows_where_nothing_exists if {
	count(runtimeclass_backed.deny) == 0 with input as request("fake") with data.inventory.runtimeclasses as {}
}

test_denies_without_parameters if {
	count(runtimeclass_backed.deny) == 1 with input as object.remove(request("gvisor"), ["parameters"]) with data.inventory.runtimeclasses as classes
}

test_allows[note] if {
	some note, class in {"listed": "gvisor", "empty": "", "null": null}
	count(runtimeclass_backed.deny) == 0 with input as request(class) with data.inventory.runtimeclasses as classes
}

test_allows_absent if {
	count(runtimeclass_backed.deny) == 0 with input as fixtures.sandbox(fixtures.plain) with data.inventory.runtimeclasses as classes
}

test_denies_for_kinds_with_a_borrowed_pod[kind] if {
	some kind, path in fixtures.borrowed
	fixtures.fields(runtimeclass_backed.deny) == {"template.spec.podTemplate.spec.runtimeClassName"} with input as fixtures.as_kind(request("fake"), kind, path)
		with data.inventory.runtimeclasses as classes
}
