package lib.times_test

import data.lib.times

# Both count alike wherever OPA counts.
test_seconds_are_those_of_opa[note] if {
	some year in ["1678", "1900", "2000", "2027", "2261"]
	some month in ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12"]
	note := concat("-", [year, month])
	text := concat("", [note, "-09T13:07:59Z"])
	times.seconds(text) * 1000000000 == time.parse_rfc3339_ns(text)
}

test_seconds[note] if {
	some note, case in {
		"the beginning": ["1970-01-01T00:00:00Z", 0],
		"each part": ["1970-01-02T03:04:05Z", 97445],
		"the largest of each": ["1999-12-31T23:59:59Z", 946684799],
		"east": ["1970-01-01T02:30:00+02:30", 0],
		"west": ["1969-12-31T12:15:00-11:45", 0],
		"the last of zones": ["1970-01-01T00:00:00+23:59", -86340],
		"half a second": ["1970-01-01T00:00:00.5Z", 0.5],
		"a leap day": ["2000-02-29T00:00:00Z", 951782400],
		"the last of years": ["9999-12-31T23:59:59Z", 253402300799],
		"no time": ["0001-01-01T00:00:00Z", -62135596800],
		"a day of no month": ["2026-02-30T00:00:00Z", 1772409600],
	}
	times.seconds(case[0]) == case[1]
}

test_no_moments[note] if {
	some note, text in {
		"words": "soon",
		"nothing": "",
		"no zone": "2026-01-01T00:00:00",
		"small letters": "2026-01-01t00:00:00z",
		"more before": "x2026-01-01T00:00:00Z",
		"more behind": "2026-01-01T00:00:00Zx",
		"a line behind": "2026-01-01T00:00:00Z\n",
		"a year of five digits": "12026-01-01T00:00:00Z",
		"a month too many": "2026-13-01T00:00:00Z",
		"a month too few": "2026-00-01T00:00:00Z",
		"a day too many": "2026-01-32T00:00:00Z",
		"a day too few": "2026-01-00T00:00:00Z",
		"an hour too many": "2026-01-01T24:00:00Z",
		"a minute too many": "2026-01-01T00:60:00Z",
		"a second too many": "2026-01-01T00:00:60Z",
		"a dot for nothing": "2026-01-01T00:00:00.Z",
		"a zone too far": "2026-01-01T00:00:00+24:00",
		"a zone beyond an hour": "2026-01-01T00:00:00+00:60",
		"a number": 1772409600,
		"null": null,
	}
	not times.seconds(text)
}
