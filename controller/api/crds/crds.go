// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions of the platform as they are
// generated from the Go types, for tests, tools and the policy engine.
package crds

import "embed"

// Files holds one YAML file a definition, named by its plural.
//
//go:embed *.yaml
var Files embed.FS
