package lib.users_test

import data.lib.users

test_known if {
	users.known with input as {"user": {"username": "ann"}}
	not users.known with input as {"user": {"username": ""}}
	not users.known with input as {"user": {"username": null}}
	not users.known with input as {}
}

test_of_groups if {
	users.of_groups(["a", "b"]) with input as {"user": {"groups": ["c", "b"]}}
	not users.of_groups(["a", "b"]) with input as {"user": {"groups": ["c"]}}
	not users.of_groups([]) with input as {"user": {"groups": ["a"]}}
	not users.of_groups(["a"]) with input as {"user": {"groups": null}}
	not users.of_groups(["a"]) with input as {}
}
