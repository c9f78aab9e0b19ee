package lib.labels_test

import data.lib.labels

test_domains if {
	labels.domain("example.com/a") == "example.com"
	labels.domain("a") == ""
	labels.domain("/a") == ""
}

test_below if {
	labels.below("example.com", "example.com")
	labels.below("a.example.com", "example.com")
	not labels.below("badexample.com", "example.com")
	not labels.below("com", "example.com")
}

requirement(operator, listed) := {"matchExpressions": [{"key": "a", "operator": operator, "values": listed}]}

test_selects[note] if {
	some note, selector in {
		"nothing said": {},
		"null": {"matchLabels": null, "matchExpressions": null},
		"label": {"matchLabels": {"a": "b"}},
		"in": requirement("In", ["x", "b"]),
		"not in": requirement("NotIn", ["x"]),
		"not in, absent": {"matchExpressions": [{"key": "z", "operator": "NotIn", "values": ["b"]}]},
		"exists": requirement("Exists", null),
		"does not exist": {"matchExpressions": [{"key": "z", "operator": "DoesNotExist"}]},
		"all of it": object.union({"matchLabels": {"c": ""}}, requirement("Exists", [])),
	}
	labels.selects(selector, {"a": "b", "c": ""})
}

test_does_not_select[note] if {
	some note, selector in {
		"another value": {"matchLabels": {"a": "c"}},
		"absent": {"matchLabels": {"a": "b", "z": ""}},
		"not in the list": requirement("In", ["x"]),
		"in the list": requirement("NotIn", ["b"]),
		"does not exist": {"matchExpressions": [{"key": "z", "operator": "Exists"}]},
		"exists": requirement("DoesNotExist", null),
		"one of two": {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "z", "operator": "Exists"}]},
		"an operator that nobody knows": requirement("Like", ["b"]),
	}
	not labels.selects(selector, {"a": "b", "c": ""})
}
