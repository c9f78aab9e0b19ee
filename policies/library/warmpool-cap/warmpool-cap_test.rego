package policies.library.warmpool_cap_test

import data.lib.fixtures
import data.policies.library.warmpool_cap

pool(replicas, namespace) := {
	"object": {"spec": {"replicas": replicas}},
	"namespace": {"name": namespace},
	"parameters": {"maxReplicas": 5, "byNamespace": {"large": 10, "none": 0}},
}

test_denies if {
	fixtures.said(warmpool_cap.deny) == {{"message": "the pool is larger than 5", "field": "spec.replicas", "value": 6}} with input as pool(6, "a")
}

test_denies_by_namespace[namespace] if {
	some namespace, replicas in {"large": 11, "none": 1}
	count(warmpool_cap.deny) == 1 with input as pool(replicas, namespace)
}

test_denies_text if {
	count(warmpool_cap.deny) == 1 with input as pool("1", "a")
}

test_denies_without_parameters if {
	count(warmpool_cap.deny) == 1 with input as {"object": {"spec": {"replicas": 1}}}
}

test_allows[note] if {
	some note, case in {"most": [5, "a"], "most of the namespace": [10, "large"], "nothing": [0, "none"], "null": [null, "a"]}
	count(warmpool_cap.deny) == 0 with input as pool(case[0], case[1])
}

test_allows_no_replicas if {
	count(warmpool_cap.deny) == 0 with input as {"object": {"spec": {}}}
}

test_without_a_namespace_it_has_no_name if {
	given := object.union(object.remove(pool(7, "a"), ["namespace"]), {"parameters": {"byNamespace": {"": 7}}})
	count(warmpool_cap.deny) == 0 with input as given
}
