package policies.library.pool_allowed_test

import data.policies.library.pool_allowed

claim(spec) := {
	"object": {"spec": spec},
	"namespace": {"name": "team"},
	"parameters": {"pools": ["shared"], "poolsByNamespace": {"team": ["own"], "other": ["theirs"]}},
}

from(name) := claim({"warmPoolRef": {"name": name}})

test_denies[name] if {
	some name in ["theirs", "Shared", "shared2", ""]
	pool_allowed.deny == {{
		"message": sprintf("the pool %q is not one from which this namespace may claim", [name]),
		"field": "spec.warmPoolRef.name",
		"value": name,
	}} with input as from(name)
}

test_denies_no_pool[note] if {
	some note, spec in {"absent": {}, "null": {"warmPoolRef": null}, "no name": {"warmPoolRef": {}}}
	some finding in pool_allowed.deny with input as claim(spec)
	finding.value == ""
}

test_denies_without_parameters if {
	count(pool_allowed.deny) == 1 with input as object.remove(from("shared"), ["parameters"])
}

test_denies_the_pools_of_a_namespace_where_none_is_known if {
	count(pool_allowed.deny) == 1 with input as object.remove(from("own"), ["namespace"])
}

test_allows[name] if {
	some name in ["own", "shared"]
	count(pool_allowed.deny) == 0 with input as from(name)
}
