# METADATA
# title: Times
# description: >-
#   Moments as RFC 3339 writes them, of any year. OPA's own functions fail for those that it cannot count in
#   nanoseconds, before 1678 and after 2261: an end in the year 9999 has to be an answer, and no fault of a rule.
package lib.times

# METADATA
# description: >-
#   The seconds from 1970 to the moment that is written, undefined for what is no moment. A day that its
#   month does not have is one of the next month.
seconds(text) := ((days(to_number(match[1]), to_number(match[2]), to_number(match[3])) * 86400) + of_day) - of_zone if {
	is_string(text)
	some match in regex.find_all_string_submatch_n(grammar, text, 1)
	of_day := ((to_number(match[4]) * 3600) + (to_number(match[5]) * 60)) + to_number(match[6])
	sign := sprintf("%s0", [match[7]])
	of_zone := (to_number(concat("", [sign, match[8]])) * 3600) + (to_number(concat("", [sign, match[9]])) * 60)
}

grammar := concat("", [
	`^([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`,
	`T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)`,
	`(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$`,
])

# Years are counted from March, so that the day that some have more is their last.
days(year, month, day) := ((((day + floor(((153 * since_march) + 2) / 5)) + (365 * counted)) + floor(counted / 4)) - floor(counted / 100)) + (floor(counted / 400) - 719469) if {
	before_march := floor((14 - month) / 12)
	counted := year - before_march
	since_march := (month + (12 * before_march)) - 3
}
