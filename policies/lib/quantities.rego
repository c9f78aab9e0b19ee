# METADATA
# title: Quantities
# description: >-
#   Kubernetes quantities as whole numbers: milli (thousandths, for CPU) and bytes (units, for memory
#   and storage), both rounded away from zero. The server computes them beforehand and passes them in
#   input.quantities; without that (the stock tools) the same answers are computed here.
package lib.quantities

import data.lib.containers
import data.lib.values
import data.lib.volumes

# METADATA
# description: >-
#   The quantity written at a field path: an object with milli and bytes, or one with error when it is
#   not a quantity.
at(path, written) := quantity if {
	quantity := input.quantities[path]
	is_object(quantity)
} else := parse(written)

# METADATA
# description: >-
#   The limits and requests of the Pod as a whole and of every container as quantities, by field path, bound
#   (limits or requests) and resource. The server reads them beforehand into input.resources; without that the
#   same answer is computed here.
resources := input.resources if {
	is_object(input.resources)
} else := {path: bounds |
	some path, owner in containers.owners
	bounds := {bound: amounts(path, bound, owner) | some bound in ["limits", "requests"]}
}

amounts(path, bound, owner) := {name: quantity |
	some name, written in values.object_at(owner, ["resources", bound])
	written != null
	quantity := at(sprintf("%s.resources.%s.%s", [path, bound, name]), written)
}

# METADATA
# description: Whether the quantity is one and greater than zero.
positive(quantity) if quantity.milli > 0

# METADATA
# description: >-
#   The amounts among the resources that are no quantity or less than zero, by field path: whose they are (owner,
#   bound and resource), and the reason. The server lists them beforehand in input.faults; without that the same
#   answer is computed here.
faults := input.faults if {
	is_object(input.faults)
} else := {field: fault |
	some path, bounds in resources
	some bound, named in bounds
	some resource, quantity in named
	reason := fault_of(quantity)
	field := sprintf("%s.resources.%s.%s", [path, bound, resource])
	fault := {"owner": path, "bound": bound, "resource": resource, "reason": reason}
}

fault_of(quantity) := quantity.error

fault_of(quantity) := "is less than zero" if quantity.milli < 0

# METADATA
# description: >-
#   The field paths of those who have a limit above zero, by resource. The server lists them beforehand in
#   input.limited; without that the same answer is computed here.
limited := input.limited if {
	is_object(input.limited)
} else := {resource: owners |
	some bounds in resources
	some resource, _ in bounds.limits
	owners := {path | some path, other in resources; other.limits[resource].milli > 0}
	count(owners) > 0
}

# METADATA
# description: >-
#   The storage that each volume claim of the object asks for, in milli, by the field path of the claim's spec; zero
#   when that is no quantity or not given. The server reads it beforehand into input.requested; without that the
#   same answer is computed here.
requested := input.requested if {
	is_object(input.requested)
} else := {path: milli |
	some path, spec in volumes.claims
	written := values.given_or(spec, ["resources", "requests", "storage"], null)
	milli := object.get(at(sprintf("%s.resources.requests.storage", [path]), written), "milli", 0)
}

# METADATA
# description: >-
#   The most, in milli, that anybody has as limit or request, by resource; what is no quantity counts as zero.
#   The server finds it beforehand in input.highest; without that the same answer is computed here.
highest := input.highest if {
	is_object(input.highest)
} else := {resource: most |
	some bounds in resources
	some named in bounds
	some resource, _ in named
	most := max([object.get(quantity, "milli", 0) | some other in resources; some amounts_of in other; quantity := amounts_of[resource]])
}

# METADATA
# description: >-
#   Where more is limited or requested than the ceilings, in milli by resource, as triples of path, bound and
#   resource.
above(ceilings) := {[path, bound, resource] |
	some resource, most in highest
	most > ceilings[resource]
	some path, bounds in resources
	some bound, named in bounds
	named[resource].milli > ceilings[resource]
}

# METADATA
# description: >-
#   The quantity that a parameter stands for, see at. The server reads those of parameters when it loads them;
#   without that the same answer is computed here.
of(written) := known[written] if {
	known[written]
} else := parse(written)

# METADATA
# description: >-
#   The texts of an object as quantities in milli, such as those of parameters; what is no quantity counts as zero.
#   The server reads those of parameters when it loads them; without that the same answer is computed here.
milli_of(written) := mappings[written] if {
	mappings[written]
} else := {name: milli |
	some name, text in written
	is_string(text)
	milli := object.get(of(text), "milli", 0)
}

# Once an evaluation: each reference to data is read by itself.
default known := {}

known := data.known.quantities

default mappings := {}

mappings := data.known.mappings

# METADATA
# description: How an amount in milli is written.
text(milli) := sprintf("%d", [milli / 1000]) if {
	milli % 1000 == 0
} else := sprintf("%dm", [milli])

# METADATA
# description: The quantity that a string or number stands for, see at.
parse(written) := quantity if {
	parts := split_number(values.text(written))
	units := scaled_digits(parts)
	quantity := {
		"milli": capped(parts, shift(units.digits, units.exponent + 3) * parts.sign, 1000),
		"bytes": capped(parts, shift(units.digits, units.exponent) * parts.sign, 1),
	}
} else := {"error": "is not a quantity such as 500m, 2, 1.5Gi or 1e3"}

grammar := `^([+-]?)([0-9]{1,40})?(?:\.([0-9]{0,40}))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*[0-9]{1,2})?$`

split_number(text) := {"digits": digits, "places": count(match[3]), "suffix": match[4], "sign": sign} if {
	some match in regex.find_all_string_submatch_n(grammar, text, 1)
	digits := concat("", [match[2], match[3]])
	digits != ""
	sign := object.get({"-": -1}, match[1], 1)
}

# An amount is its digits, times ten to the power of the exponent.
scaled_digits(parts) := {
	"digits": parts.digits,
	"exponent": decimal_exponent(parts.suffix) - parts.places,
}

scaled_digits(parts) := {
	"digits": json.marshal(to_number(without_leading_zeros(parts.digits)) * binary[parts.suffix]),
	"exponent": 0 - parts.places,
}

decimal_exponent(suffix) := decimal[suffix]

decimal_exponent(suffix) := to_number(without_plus_and_zeros(substring(suffix, 1, -1))) if {
	startswith(lower(suffix), "e")
	count(suffix) > 1
	not suffix in object.keys(binary)
}

decimal := {
	"": 0,
	"n": -9,
	"u": -6,
	"m": -3,
	"k": 3,
	"M": 6,
	"G": 9,
	"T": 12,
	"P": 15,
	"E": 18,
}

binary := {
	"Ki": 1024,
	"Mi": 1048576,
	"Gi": 1073741824,
	"Ti": 1099511627776,
	"Pi": 1125899906842624,
	"Ei": 1152921504606846976,
}

# Binary amounts end at the largest signed 64-bit number, as in Kubernetes.
largest := 9223372036854775807

capped(parts, amount, unit) := amount if {
	not parts.suffix in object.keys(binary)
} else := max([min([amount, largest * unit]), (0 - largest) * unit])

without_leading_zeros(digits) := trimmed if {
	trimmed := trim_left(digits, "0")
	trimmed != ""
} else := "0"

without_plus_and_zeros(exponent) := concat("", ["-", without_leading_zeros(substring(exponent, 1, -1))]) if {
	startswith(exponent, "-")
} else := without_leading_zeros(trim_prefix(exponent, "+"))

zeros := replace("00000000000000", "0", "000000000000")

# Multiplies by a power of ten on the text, so that no digit is lost; a remainder rounds up.
shift(digits, places) := to_number(without_leading_zeros(concat("", [digits, substring(zeros, 0, places)]))) if {
	places >= 0
}

shift(digits, places) := to_number(without_leading_zeros(whole)) + remainder(rest) if {
	places < 0
	whole := substring(digits, 0, max([0, count(digits) + places]))
	rest := substring(digits, count(whole), -1)
}

remainder(digits) := 0 if {
	trim(digits, "0") == ""
} else := 1
