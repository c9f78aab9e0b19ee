// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies holds the library of rules, embedded, so that a program always judges by the
// rules that it was built with.
package policies

import (
	"embed"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

//go:embed lib/*.rego library/*/*.rego
var files embed.FS

// Library returns the modules of the library, without their tests.
func Library() ([]engine.Module, error) {
	return engine.LoadFS(engine.SourceLibrary, files, "lib", "library")
}
