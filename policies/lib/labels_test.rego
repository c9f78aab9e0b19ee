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
