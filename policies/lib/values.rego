# METADATA
# title: Values
# description: >-
#   Reads of documents that may miss a field, hold null, or hold a value of the wrong type. None of
#   these functions fails: a rule decides what absence means, and never stays silent by accident.
package lib.values

# METADATA
# description: The value at the path, undefined when it is absent or null.
given(root, path) := value if {
	is_object(root)
	value := object.get(root, path, null)
	value != null
}

# METADATA
# description: The value at the path, or the fallback when it is absent or null.
given_or(root, path, fallback) := value if {
	value := given(root, path)
} else := fallback

# METADATA
# description: The object at the path, empty when there is none.
object_at(root, path) := value if {
	value := given(root, path)
	is_object(value)
} else := {}

# METADATA
# description: The array or object at the path whose members are to be visited, empty when there is none.
collection_at(root, path) := value if {
	value := given(root, path)
	not is_scalar(value)
} else := []

# METADATA
# description: The string at the path, empty when there is none.
string_at(root, path) := value if {
	value := given(root, path)
	is_string(value)
} else := ""

# METADATA
# description: The value when it is an object, an empty object otherwise.
as_object(value) := value if {
	is_object(value)
} else := {}

# METADATA
# description: Text of a value for a message; strings stay as they are, all else becomes JSON.
text(value) := value if {
	is_string(value)
} else := json.marshal(value)

# METADATA
# description: How many bytes a text has.
bytes(text) := count(hex.encode(text)) / 2

# METADATA
# description: Whether a name is the pattern, begins like one that ends in *, or ends like one that begins with *.
matches(pattern, name) if pattern == name

matches(pattern, name) if {
	endswith(pattern, "*")
	startswith(name, trim_suffix(pattern, "*"))
}

matches(pattern, name) if {
	startswith(pattern, "*")
	endswith(name, trim_prefix(pattern, "*"))
}

is_scalar(value) if is_string(value)

is_scalar(value) if is_number(value)

is_scalar(value) if is_boolean(value)
