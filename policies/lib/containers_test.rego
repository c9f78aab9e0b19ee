package lib.containers_test

import data.lib.containers
import data.lib.fixtures

every_list := {list: [{"name": list}] | some list in fixtures.lists}

test_every_list_with_its_path if {
	containers.by_path == {
		"spec.podTemplate.spec.containers[0]": {"name": "containers"},
		"spec.podTemplate.spec.initContainers[0]": {"name": "initContainers"},
		"spec.podTemplate.spec.ephemeralContainers[0]": {"name": "ephemeralContainers"},
	} with input as fixtures.sandbox(every_list)
}

test_started_leaves_out_ephemeral_containers if {
	object.keys(containers.started) == {
		"spec.podTemplate.spec.containers[0]",
		"spec.podTemplate.spec.initContainers[0]",
	} with input as fixtures.sandbox(every_list)
}

test_members_of_the_wrong_type_count_as_empty if {
	containers.by_path == {
		"spec.podTemplate.spec.containers[0]": {},
		"spec.podTemplate.spec.containers[1]": {},
		"spec.podTemplate.spec.containers[2]": {"name": "c"},
	} with input as fixtures.sandbox({"containers": [null, "x", {"name": "c"}], "initContainers": null})
}

test_a_list_written_as_an_object_is_visited if {
	containers.by_path == {"spec.podTemplate.spec.containers[a]": {"name": "c"}} with input as fixtures.sandbox({"containers": {"a": {"name": "c"}}})
}

test_label if {
	containers.label({"name": "a"}) == `container "a"`
	containers.label({"name": null}) == "a container without a name"
	containers.label({}) == "a container without a name"
}

test_the_servers_list_is_used if {
	containers.by_path == {"a": {"name": "b"}} with input as {"containers": {"a": {"name": "b"}}}
	containers.by_path == {} with input as {"containers": "x"}
}
