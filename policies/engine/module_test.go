// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestLoadFS(t *testing.T) {
	text := &fstest.MapFile{Data: []byte("package policies.a.b")}
	// The layout of a mounted ConfigMap has each file three times.
	mounted := fstest.MapFS{
		"rules/b.rego":                   text,
		"rules/a/a.rego":                 text,
		"rules/a/a_test.rego":            text,
		"rules/README.md":                text,
		"rules/..data/b.rego":            text,
		"rules/..2026_11_29/b.rego":      text,
		"rules/.hidden.rego":             text,
		"elsewhere/c.rego":               text,
		"empty/only_a_test_in_here.yaml": text,
	}
	modules, err := engine.LoadFS("folder", mounted, "rules")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range modules {
		names = append(names, m.Source+" "+m.Name)
	}
	if diff := cmp.Diff([]string{"folder rules/a/a.rego", "folder rules/b.rego"}, names); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	for _, root := range []string{"empty", "absent"} {
		if _, err := engine.LoadFS("folder", mounted, root); err == nil || !strings.Contains(err.Error(), root) {
			t.Errorf("root %s: error %v, want one that names it", root, err)
		}
	}
}
