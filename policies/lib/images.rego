# METADATA
# title: Image references
# description: >-
#   References as the container runtime reads them. "python" is docker.io/library/python; the first
#   segment is a registry only if it has a dot, a port or an upper-case letter, or is localhost.
package lib.images

import data.lib.containers
import data.lib.values
import data.lib.volumes

# METADATA
# description: >-
#   Every image of the Pod by field path: those of the containers, and those mounted as volumes.
by_path[path] := written if {
	some container_path, container in containers.by_path
	path := sprintf("%s.image", [container_path])
	written := values.given_or(container, ["image"], "")
}

by_path[path] := written if {
	some volume_path, volume in volumes.by_path
	source := values.given(volume, ["image"])
	path := sprintf("%s.image.reference", [volume_path])
	written := values.given_or(source, ["reference"], "")
}

# METADATA
# description: >-
#   What parse gives for every image of the Pod, by field path. The server reads them beforehand into
#   input.images; without that the same answer is computed here.
parsed := input.images if {
	is_object(input.images)
} else := {path: parse(written) | some path, written in by_path}

# METADATA
# description: >-
#   The parts of a reference: registry, repository (with the registry in front), tag and digest, the
#   last two empty when absent. A text that is no reference gives an object with error.
parse(written) := reference if {
	is_string(written)
	some match in regex.find_all_string_submatch_n(grammar, written, 1)
	named := normalised(match[1])
	regex.match(registry_grammar, named.host)
	regex.match(path_grammar, named.path)
	count(named.path) <= 255
	known_digest(match[3])
	not regex.match(`^[0-9a-f]{64}$`, written)
	reference := {
		"registry": named.registry,
		"repository": sprintf("%s/%s", [named.registry, named.path]),
		"tag": match[2],
		"digest": match[3],
	}
} else := {"error": "is not an image reference such as python:3.12 or registry.example.com:5000/team/image@sha256:..."}

# METADATA
# description: Whether the repository is the prefix or lies below it, segment by segment.
within(repository, prefix) if repository == prefix

within(repository, prefix) if startswith(repository, sprintf("%s/", [prefix]))

# METADATA
# description: A registry or repository as an administrator lists it, in the form of parse.
listed(entry) := trim_suffix(canonical(lower(entry)), "/")

canonical(entry) := concat("", ["docker.io", trim_prefix(entry, "index.docker.io")]) if {
	within(entry, "index.docker.io")
} else := entry

grammar := `^([^@]+?)(?::([0-9A-Za-z_][0-9A-Za-z_.-]{0,127}))?(?:@([^@]+))?$`

registry_grammar := concat("", [
	`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])`,
	`(?::[0-9]+)?$`,
])

path_grammar := `^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`

known_digest("")

known_digest(digest) if regex.match(`^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`, digest)

# The host is checked as written: some letters beyond ASCII become ASCII in lower case.
normalised(name) := {"host": first, "registry": canonical(lower(first)), "path": path} if {
	[first, rest] := split_first(name)
	names_registry(first)
	path := official(canonical(first), rest)
} else := {"host": "docker.io", "registry": "docker.io", "path": official("docker.io", name)}

split_first(name) := [substring(name, 0, at), substring(name, at + 1, -1)] if {
	contains(name, "/")
	at := indexof(name, "/")
}

names_registry("localhost")

names_registry(segment) if contains(segment, ".")

names_registry(segment) if contains(segment, ":")

names_registry(segment) if lower(segment) != segment

official("docker.io", path) := concat("/", ["library", path]) if not contains(path, "/")

official("docker.io", path) := path if contains(path, "/")

official(registry, path) := path if registry != "docker.io"
