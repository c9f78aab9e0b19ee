package policies.library.max_ttl_test

import data.lib.fixtures
import data.policies.library.max_ttl

at(end) := {
	"now": "2026-01-01T00:00:00Z",
	"object": {"spec": {"shutdownTime": end}},
	"parameters": {"maxHours": 24},
}

created(request) := object.union(request, {"object": {"metadata": {"creationTimestamp": "2025-12-31T12:00:00Z"}}})

test_denies_what_is_too_late if {
	fixtures.said(max_ttl.deny) == {{
		"message": "it does not end within 24 hours after it began",
		"field": "spec.shutdownTime",
		"value": "2026-01-02T00:00:01Z",
	}} with input as at("2026-01-02T00:00:01Z")
}

test_denies_a_moment_too_late if {
	count(max_ttl.deny) == 1 with input as at("2026-01-02T00:00:00.00005Z")
}

test_denies_a_claim if {
	fixtures.said(max_ttl.deny) == {{
		"message": "it does not end within 720 hours after it began",
		"field": "spec.lifecycle.shutdownTime",
		"value": "2026-01-31T00:00:01Z",
	}} with input as {"now": "2026-01-01T00:00:00Z", "object": {"spec": {"lifecycle": {"shutdownTime": "2026-01-31T00:00:01Z"}}}}
}

test_denies_what_is_put_off if {
	count(max_ttl.deny) == 1 with input as object.union(created(at("2026-01-01T12:00:01Z")), {"old_object": {"spec": {"shutdownTime": "2026-01-01T11:00:00Z"}}})
}

test_allows_what_is_not_changed if {
	count(max_ttl.deny) == 0 with input as object.union(created(at("2027-01-01T12:00:01Z")), {"old_object": {"spec": {"shutdownTime": "2027-01-01T12:00:01Z"}}})
}

test_allows[note] if {
	some note, end in {"the last moment": "2026-01-02T00:00:00Z", "another zone": "2026-01-02T02:00:00+02:00", "past": "2020-01-01T00:00:00Z", "long past": "0001-01-01T00:00:00Z"}
	count(max_ttl.deny) == 0 with input as at(end)
}

test_allows_the_last_moment_after_creation if {
	count(max_ttl.deny) == 0 with input as created(at("2026-01-01T12:00:00Z"))
	count(max_ttl.deny) == 1 with input as created(at("2026-01-01T12:00:01Z"))
}

# Nobody can say when that is: it may be later than all that is allowed.
test_denies_what_is_no_moment_in_time[note] if {
	some note, end in {"centuries away": "9999-12-31T00:00:00Z", "words": "soon", "a number": 7}
	count(max_ttl.deny) == 1 with input as at(end)
}

test_what_is_old_may_end_at_once[note] if {
	some note, case in {
		"at once": ["2026-01-01T00:00:00Z", 0],
		"before": ["2025-12-31T23:00:00Z", 0],
		"in a moment": ["2026-01-01T00:00:01Z", 1],
	}
	long_ago := {"object": {"metadata": {"creationTimestamp": "2025-10-01T00:00:00Z"}}}
	count(max_ttl.deny) == case[1] with input as object.union(at(case[0]), long_ago)
}

test_a_creation_that_is_no_moment_is_now[note] if {
	some note, creation in {"words": "then", "null": null, "nothing": ""}
	count(max_ttl.deny) == 0 with input as object.union(at("2026-01-02T00:00:00Z"), {"object": {"metadata": {"creationTimestamp": creation}}})
}

test_allows_no_end[note] if {
	some note, spec in {"absent": {}, "null": {"shutdownTime": null}}
	count(max_ttl.deny) == 0 with input as {"now": "2026-01-01T00:00:00Z", "object": {"spec": spec}}
}

test_allows_a_claim_that_is_not_changed if {
	claim := {"spec": {"lifecycle": {"shutdownTime": "2027-01-01T00:00:00Z"}}}
	count(max_ttl.deny) == 0 with input as {"now": "2026-01-01T00:00:00Z", "object": claim, "old_object": claim}
}

test_denies_a_claim_that_is_put_off if {
	claim := {"spec": {"lifecycle": {"shutdownTime": "2027-01-02T00:00:00Z"}}}
	old := {"spec": {"lifecycle": {"shutdownTime": "2027-01-01T00:00:00Z"}}}
	count(max_ttl.deny) == 1 with input as {"now": "2026-01-01T00:00:00Z", "object": claim, "old_object": old}
}

test_what_ended_too_late_may_end_earlier[note] if {
	some note, case in {
		"earlier": ["2027-01-01T11:59:59Z", 0],
		"the same moment": ["2027-01-01T13:00:00+01:00", 0],
		"later": ["2027-01-01T12:00:01Z", 1],
	}
	former := {"old_object": {"spec": {"shutdownTime": "2027-01-01T12:00:00Z"}}}
	count(max_ttl.deny) == case[1] with input as object.union(created(at(case[0])), former)
}

test_what_never_ended_may_end[note] if {
	some note, case in {
		"at any time": [{}, "2028-01-01T00:00:00Z", 0],
		"where that was said": [{"shutdownTime": null}, "2028-01-01T00:00:00Z", 0],
		"where nobody knew": [{"shutdownTime": "soon"}, "2028-01-01T00:00:00Z", 0],
		"centuries from now": [{}, "9999-12-31T00:00:00Z", 0],
		"but not when nobody knows": [{}, "later", 1],
		"earlier than centuries from now": [{"shutdownTime": "9999-12-31T00:00:00Z"}, "2100-01-01T00:00:00Z", 0],
		"later than centuries from now": [{"shutdownTime": "9999-12-30T00:00:00Z"}, "9999-12-31T00:00:00Z", 1],
	}
	count(max_ttl.deny) == case[2] with input as object.union(created(at(case[1])), {"old_object": {"spec": case[0]}})
}

test_what_never_ended_may_end_though_it_has_no_spec if {
	count(max_ttl.deny) == 0 with input as object.union(created(at("2028-01-01T00:00:00Z")), {"old_object": {}})
}
