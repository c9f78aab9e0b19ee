package lib.quantities_test

import data.lib.quantities

# Amounts as Kubernetes reads them: text to [milli, bytes].
amounts := {
	"0": [0, 0],
	"000": [0, 0],
	"1": [1000, 1],
	"+1": [1000, 1],
	"-1": [-1000, -1],
	"-0": [0, 0],
	"2.": [2000, 2],
	".5": [500, 1],
	"0.5": [500, 1],
	"-0.5": [-500, -1],
	"100m": [100, 1],
	"1500m": [1500, 2],
	"5n": [1, 1],
	"1u": [1, 1],
	"1000u": [1, 1],
	"1001u": [2, 1],
	"2k": [2000000, 2000],
	"1M": [1000000000, 1000000],
	"1G": [1000000000000, 1000000000],
	"1T": [1000000000000000, 1000000000000],
	"1P": [1000000000000000000, 1000000000000000],
	"1E": [1000000000000000000000, 1000000000000000000],
	"1e3": [1000000, 1000],
	"1E3": [1000000, 1000],
	"1e+3": [1000000, 1000],
	"1e-3": [1, 1],
	"1e-03": [1, 1],
	"1e+03": [1000000, 1000],
	"2e0": [2000, 2],
	"1e12": [1000000000000000, 1000000000000],
	"1Ki": [1024000, 1024],
	"1.5Gi": [1610612736000, 1610612736],
	"0.1Ki": [102400, 103],
	"128974848": [128974848000, 128974848],
	"4294967296m": [4294967296, 4294968],
	"8Ei": [9223372036854775807000, 9223372036854775807],
	"-9Ei": [-9223372036854775807000, -9223372036854775807],
	"12345678901234567890": [12345678901234567890000, 12345678901234567890],
}

test_amounts[text] if {
	some text, amount in amounts
	quantities.parse(text) == {"milli": amount[0], "bytes": amount[1]}
}

test_numbers[note] if {
	some note, case in {"int": [2, 2000], "fraction": [0.5, 500], "small": [0.000001, 1]}
	quantities.parse(case[0]).milli == case[1]
}

test_not_quantities[note] if {
	some note, written in {
		"empty": "",
		"null": null,
		"boolean": true,
		"object": {},
		"array": [],
		"word": "lots",
		"space": "1 Gi",
		"trailing space": "1Gi ",
		"unit of bytes": "1GB",
		"capital K": "2K",
		"two dots": "1.2.3",
		"dot": ".",
		"sign": "-",
		"suffix only": "Ki",
		"fractional exponent": "1e1.5",
		"two suffixes": "1KiM",
		"hexadecimal": "0x10",
		"exponent beyond reason": "1e100",
		"infinity": "Inf",
	}
	quantity := quantities.parse(written)
	is_string(quantity.error)
	object.keys(quantity) == {"error"}
	not quantities.positive(quantity)
}

test_the_servers_answer_is_used if {
	quantities.at("a.b", "1") == {"milli": 7, "bytes": 8} with input as {"quantities": {"a.b": {"milli": 7, "bytes": 8}}}
}

test_without_the_servers_answer_it_is_computed[note] if {
	some note, document in {
		"nothing": {},
		"other path": {"quantities": {"b.a": {"milli": 7, "bytes": 8}}},
		"null": {"quantities": {"a.b": null}},
		"wrong type": {"quantities": "x"},
	}
	quantities.at("a.b", "1") == {"milli": 1000, "bytes": 1} with input as document
}

test_positive if {
	quantities.positive({"milli": 1, "bytes": 1})
	not quantities.positive({"milli": 0, "bytes": 0})
	not quantities.positive({"milli": -1, "bytes": -1})
	not quantities.positive({"error": "x"})
}

test_resources_of_the_pod_and_its_containers if {
	spec := {"resources": {"limits": {"cpu": "2"}}, "containers": [{"resources": {"limits": {"cpu": "1", "memory": null}, "requests": "x"}}]}
	quantities.resources == {
		"spec.podTemplate.spec": {"limits": {"cpu": {"milli": 2000, "bytes": 2}}, "requests": {}},
		"spec.podTemplate.spec.containers[0]": {"limits": {"cpu": {"milli": 1000, "bytes": 1}}, "requests": {}},
	} with input as {"pod": {"spec": spec}}
}

test_the_servers_resources_are_used if {
	quantities.resources == {"a": {}} with input as {"resources": {"a": {}}}
	quantities.resources == {"spec.podTemplate.spec": {"limits": {}, "requests": {}}} with input as {"resources": "x"}
}

test_parameters_that_the_server_has_read if {
	quantities.of("1") == {"milli": 7, "bytes": 8} with data.known.quantities as {"1": {"milli": 7, "bytes": 8}}
	quantities.of("2") == {"milli": 2000, "bytes": 2} with data.known.quantities as {"1": {"milli": 7, "bytes": 8}}
	quantities.of(1) == {"milli": 1000, "bytes": 1}
}

test_mappings_of_parameters if {
	quantities.milli_of({"a": "1", "b": "lots", "c": 3}) == {"a": 1000, "b": 0}
	quantities.milli_of({"a": "1"}) == {"a": 7} with data.known.mappings as {{"a": "1"}: {"a": 7}}
}

# One of each suffix: text to [milli, bytes].
suffixes := {
	"2000000n": [2, 1],
	"2000u": [2, 1],
	"2m": [2, 1],
	"2k": [2000000, 2000],
	"2M": [2000000000, 2000000],
	"2G": [2000000000000, 2000000000],
	"2T": [2000000000000000, 2000000000000],
	"2P": [2000000000000000000, 2000000000000000],
	"2E": [2000000000000000000000, 2000000000000000000],
	"2Ki": [2048000, 2048],
	"2Mi": [2097152000, 2097152],
	"2Gi": [2147483648000, 2147483648],
	"2Ti": [2199023255552000, 2199023255552],
	"2Pi": [2251799813685248000, 2251799813685248],
	"2Ei": [2305843009213693952000, 2305843009213693952],
}

test_every_suffix[text] if {
	some text, amount in suffixes
	quantities.parse(text) == {"milli": amount[0], "bytes": amount[1]}
}

test_what_is_said_of_no_quantity if {
	quantities.parse("lots") == {"error": "is not a quantity such as 500m, 2, 1.5Gi or 1e3"}
}

test_text if {
	quantities.text(2000) == "2"
	quantities.text(2001) == "2001m"
	quantities.text(0) == "0"
}
