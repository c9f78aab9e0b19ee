package lib.cidrs_test

import data.lib.cidrs

test_ports_of_a_rule[note] if {
	some note, case in {
		"none": [{}, {"every port"}],
		"null": [{"ports": null}, {"every port"}],
		"empty": [{"ports": []}, {"every port"}],
		"some": [{"ports": [{"port": 1}, {"port": 2}, {"port": 1}]}, {{"port": 1}, {"port": 2}}],
	}
	cidrs.ports_of(case[0]) == case[1]
}

test_very_many_ports_are_one if {
	twenty := [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
	cidrs.ports_of({"ports": twenty}) == {0, 1}
	count(cidrs.ports_of({"ports": array.concat(twenty, [2])})) == 1
}

test_ports_of_blocks if {
	rules := [{"to": [{}, {"ipBlock": {}}], "ports": [1]}, {"to": [{}]}, {}]
	cidrs.ports == {
		"spec.networkPolicy.egress[0].to[0].ipBlock": {1},
		"spec.networkPolicy.egress[0].to[1].ipBlock": {1},
		"spec.networkPolicy.egress[1].to[0].ipBlock": {"every port"},
	} with input as {"object": {"spec": {"networkPolicy": {"egress": rules}}}}
}

test_ranges_that_meet[note] if {
	some note, case in {
		"the same": ["10.0.0.0/8", "10.0.0.0/8", true],
		"within": ["0.0.0.0/0", "10.0.0.0/8", true],
		"beside": ["128.0.0.0/1", "10.0.0.0/8", false],
		"another family": ["::/0", "10.0.0.0/8", false],
		"none": ["x", "x", false],
	}
	count([1 | cidrs.meet(case[0], case[1])]) == count([1 | case[2] == true])
}

test_unreadable_ranges if {
	peers := [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "010.0.0.0/8"}}, {"ipBlock": {}}, {}]
	cidrs.unreadable == {
		"spec.networkPolicy.egress[0].to[1].ipBlock.cidr": "010.0.0.0/8",
		"spec.networkPolicy.egress[0].to[2].ipBlock.cidr": "",
	} with input as {"object": {"spec": {"networkPolicy": {"egress": [{"to": peers}]}}}}
}
