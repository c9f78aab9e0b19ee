// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The grammar of image references is that of policies/lib/images.rego, where its parts are explained.
var (
	imageGrammar    = regexp.MustCompile(`^([^@]+?)(?::([0-9A-Za-z_][0-9A-Za-z_.-]{0,127}))?(?:@([^@]+))?$`)
	registryGrammar = regexp.MustCompile(
		`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$`)
	pathGrammar   = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	digestGrammar = regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
	idGrammar     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

const (
	defaultRegistry = "docker.io"
	olderRegistry   = "index.docker.io"
	// maxImagePath is what registries allow, in bytes.
	maxImagePath = 255
)

var notImage = ast.ObjectTerm(ast.Item(ast.InternedTerm("error"),
	ast.StringTerm("is not an image reference such as python:3.12 or registry.example.com:5000/team/image@sha256:...")))

// imageTerm returns {registry, repository, tag, digest}, or {error}.
func imageTerm(text string) *ast.Term {
	match := imageGrammar.FindStringSubmatch(text)
	if match == nil || idGrammar.MatchString(text) {
		return notImage
	}
	host, path := splitImage(match[1])
	registry := canonicalRegistry(host)
	if !registryGrammar.MatchString(host) || !pathGrammar.MatchString(path) || len(path) > maxImagePath ||
		(match[3] != "" && !digestGrammar.MatchString(match[3])) {
		return notImage
	}
	item := func(key, value string) [2]*ast.Term {
		return ast.Item(ast.InternedTerm(key), ast.StringTerm(value))
	}
	return ast.ObjectTerm(item("registry", registry), item("repository", registry+"/"+path), item("tag", match[2]), item("digest", match[3]))
}

// splitImage returns the host as written and the path of a name, with what is left out filled in.
func splitImage(name string) (host, path string) {
	host, path = defaultRegistry, name
	if first, rest, ok := strings.Cut(name, "/"); ok && namesRegistry(first) {
		host, path = first, rest
	}
	// Container engines fill in the path for the host in lower case only.
	if official := host == defaultRegistry || host == olderRegistry; official && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host, path
}

func namesRegistry(segment string) bool {
	return segment == "localhost" || strings.ContainsAny(segment, ".:") || strings.ToLower(segment) != segment
}

func canonicalRegistry(host string) string {
	host = strings.ToLower(host)
	if host == olderRegistry {
		return defaultRegistry
	}
	return host
}
