package lib.values_test

import data.lib.values

document := {"a": {"b": null, "c": 0, "d": "x", "e": [1], "f": {"g": false}}}

test_given_skips_absent_null_and_scalars[note] if {
	some note, path in {
		"absent": ["z"],
		"null": ["a", "b"],
		"below null": ["a", "b", "c"],
		"below a scalar": ["a", "c", "x"],
		"below a string": ["a", "d", "x"],
	}
	not values.given(document, path)
	values.given_or(document, path, "fallback") == "fallback"
}

test_given_keeps_false_and_zero if {
	values.given(document, ["a", "f", "g"]) == false
	values.given(document, ["a", "c"]) == 0
}

test_a_root_that_is_no_object_has_nothing[note] if {
	some note, root in {"null": null, "string": "x", "array": ["x"], "number": 1}
	not values.given(root, ["x"])
	values.object_at(root, ["x"]) == {}
	values.collection_at(root, ["x"]) == []
	values.string_at(root, ["x"]) == ""
}

test_types if {
	values.object_at(document, ["a", "f"]) == {"g": false}
	values.object_at(document, ["a", "d"]) == {}
	values.collection_at(document, ["a", "e"]) == [1]
	values.collection_at(document, ["a", "f"]) == {"g": false}
	values.collection_at(document, ["a", "d"]) == []
	values.collection_at(document, ["a", "c"]) == []
	values.collection_at(document, ["a", "f", "g"]) == []
	values.string_at(document, ["a", "d"]) == "x"
	values.string_at(document, ["a", "c"]) == ""
	values.as_object([1]) == {}
	values.as_object({"x": 1}) == {"x": 1}
	values.text("x") == "x"
	values.text(null) == "null"
	values.text({"x": 1}) == `{"x":1}`
}

test_matches if {
	values.matches("a", "a")
	values.matches("a*", "a")
	values.matches("a*", "ab")
	values.matches("*", "")
	not values.matches("a", "ab")
	not values.matches("a*", "b")
	values.matches("*a", "ba")
	values.matches("*a", "a")
	not values.matches("*a", "ab")
	not values.matches("a*b", "ab")
}

test_bytes if {
	values.bytes("") == 0
	values.bytes("a") == 1
	values.bytes("é") == 2
	values.bytes("😀") == 4
}
