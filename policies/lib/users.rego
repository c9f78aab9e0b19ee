# METADATA
# title: Users
# description: Who sent the request; nobody is known outside of admission.
package lib.users

# METADATA
# description: Whether somebody sent the object, as it is not when what is stored is judged.
known if {
	is_string(input.user.username)
	input.user.username != ""
}

# METADATA
# description: Whether the user belongs to one of the groups.
of_groups(groups) if {
	some group in input.user.groups
	group in groups
}
