// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a builder with one component of one program.
func tiny(t *testing.T, source string) (*Builder, Component) {
	t.Helper()
	b := &Builder{Source: t.TempDir(), Cache: t.TempDir(), toolchain: "go1.26"}
	module := filepath.Join(b.Source, "tiny")
	if err := os.Mkdir(module, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module tiny\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b, Component{Name: "tiny", Programs: []Program{{File: "tiny", Package: ".", Aliases: []string{"other"}}}}
}

func TestAComponentIsBuiltOnceAndCalledByAllItsNames(t *testing.T) {
	b, c := tiny(t, "package main\n\nfunc main() {}\n")
	if err := os.Mkdir(filepath.Join(b.Cache, unfinished+"tiny-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Build(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	missing, err := b.Missing([]Component{c})
	if err != nil || len(missing) != 0 {
		t.Errorf("missing after the build: got %v and %v, want none", missing, err)
	}
	bin := filepath.Join(t.TempDir(), "bin")
	if err := b.Link([]Component{c}, bin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tiny", "other"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Errorf("program %s: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(b.Cache, unfinished+"*")); err != nil || len(left) != 0 {
		t.Errorf("unfinished builds: got %v and %v, want none", left, err)
	}
}

func TestABuildThatFailsIsMissingStillAndSaysWhatTheCompilerSaid(t *testing.T) {
	b, c := tiny(t, "package main\n\nfunc main() { nonsense() }\n")
	err := b.Build(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("build: got %v, want the compiler's words", err)
	}
	if missing, err := b.Missing([]Component{c}); err != nil || len(missing) != 1 {
		t.Errorf("missing after the failure: got %v and %v, want the component", missing, err)
	}
}
