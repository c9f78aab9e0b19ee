package lib.images_test

import data.lib.fixtures
import data.lib.images

sha := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

# Text to [registry, repository, tag, digest].
references := {
	"python": ["docker.io", "docker.io/library/python", "", ""],
	"python:3.12-slim": ["docker.io", "docker.io/library/python", "3.12-slim", ""],
	"team/agent": ["docker.io", "docker.io/team/agent", "", ""],
	"docker.io/python": ["docker.io", "docker.io/library/python", "", ""],
	"index.docker.io/python:1": ["docker.io", "docker.io/library/python", "1", ""],
	"DOCKER.IO/team/agent": ["docker.io", "docker.io/team/agent", "", ""],
	"DOCKER.IO/agent": ["docker.io", "docker.io/agent", "", ""],
	"a.b": ["docker.io", "docker.io/library/a.b", "", ""],
	"localhost/agent": ["localhost", "localhost/agent", "", ""],
	"localhost:5000/agent": ["localhost:5000", "localhost:5000/agent", "", ""],
	"localhost:5000/agent:2": ["localhost:5000", "localhost:5000/agent", "2", ""],
	"agent:5000": ["docker.io", "docker.io/library/agent", "5000", ""],
	"registry.example.com/a/b/c": ["registry.example.com", "registry.example.com/a/b/c", "", ""],
	"Registry.Example.com/a": ["registry.example.com", "registry.example.com/a", "", ""],
	"registry.example.com.evil.com/a": ["registry.example.com.evil.com", "registry.example.com.evil.com/a", "", ""],
	"[fd00::1]:5000/a:1": ["[fd00::1]:5000", "[fd00::1]:5000/a", "1", ""],
	"10.0.0.1/a": ["10.0.0.1", "10.0.0.1/a", "", ""],
}

test_references[text] if {
	some text, parts in references
	images.parse(text) == {"registry": parts[0], "repository": parts[1], "tag": parts[2], "digest": parts[3]}
}

test_digests if {
	images.parse(concat("@", ["python", sha])) == {
		"registry": "docker.io",
		"repository": "docker.io/library/python",
		"tag": "",
		"digest": sha,
	}
	images.parse(concat("@", ["registry.example.com:5000/a:1", sha])) == {
		"registry": "registry.example.com:5000",
		"repository": "registry.example.com:5000/a",
		"tag": "1",
		"digest": sha,
	}
}

test_what_is_said_of_no_reference if {
	images.parse("Python") == {"error": "is not an image reference such as python:3.12 or registry.example.com:5000/team/image@sha256:..."}
}

test_malformed[note] if {
	some note, written in {
		"empty": "",
		"null": null,
		"number": 5,
		"object": {},
		"upper-case repository": "Python",
		"upper-case path": "registry.example.com/Team/agent",
		"space": "python 3",
		"leading space": " python",
		"line break": "python\n",
		"look-alike letter": "pythоn",
		"a host that is ASCII in lower case only": "registrİ.example.com/a",
		"scheme": "https://registry.example.com/a",
		"leading slash": "/python",
		"trailing slash": "python/",
		"double slash": "registry.example.com//a",
		"trailing dot of the host": "registry.example.com./a",
		"underscore in the host": "my_registry.example.com/a",
		"empty tag": "python:",
		"two tags": "python:1:2",
		"parent": "registry.example.com/../a",
		"short digest": "python@sha256:0123",
		"unknown algorithm": "python@md5:0123456789abcdef0123456789abcdef",
		"upper-case digest": "python@sha256:0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF",
		"two digests": concat("@", ["python", sha, sha]),
		"digest only": concat("", ["@", sha]),
		"an image id": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"a long repository": concat("", ["registry.example.com/", replace("xxxxxxxxxxxxxxxx", "x", "aaaaaaaaaaaaaaaa")]),
	}
	is_string(images.parse(written).error)
}

test_within[note] if {
	some note, case in {
		"same": ["docker.io/team", true],
		"below": ["docker.io/team/agent", true],
		"longer segment": ["docker.io/teamwork", false],
		"above": ["docker.io", false],
	}
	within(case[0]) == case[1]
}

within(repository) if images.within(repository, "docker.io/team")

within(repository) := false if not images.within(repository, "docker.io/team")

test_listed if {
	images.listed("Index.Docker.io") == "docker.io"
	images.listed("index.docker.io/team/") == "docker.io/team"
	images.listed("registry.example.com") == "registry.example.com"
}

test_by_path_has_containers_and_image_volumes if {
	spec := {
		"containers": [{"image": "a"}, {"image": null}],
		"initContainers": [{"image": "b"}],
		"volumes": [{"image": {"reference": "c"}}, {"image": {}}, {"emptyDir": {}}],
	}
	images.by_path == {
		"spec.podTemplate.spec.containers[0].image": "a",
		"spec.podTemplate.spec.containers[1].image": "",
		"spec.podTemplate.spec.initContainers[0].image": "b",
		"spec.podTemplate.spec.volumes[0].image.reference": "c",
		"spec.podTemplate.spec.volumes[1].image.reference": "",
	} with input as fixtures.sandbox(spec)
}

test_the_servers_reading_is_used if {
	images.parsed == {"a": {"error": "b"}} with input as {"images": {"a": {"error": "b"}}}
	images.parsed == {} with input as {"images": "x"}
}

test_the_longest_path if {
	path := substring(replace("aaaaaaaaaaaaaaaa", "a", "bbbbbbbbbbbbbbbb"), 0, 255)
	images.parse(sprintf("a.b/%s", [path])).repository == sprintf("a.b/%s", [path])
	images.parse(sprintf("a.b/%sc", [path])).error
}
