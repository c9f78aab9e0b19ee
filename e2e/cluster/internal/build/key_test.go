// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"slices"
	"testing"
	"testing/fstest"
)

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func module() fstest.MapFS {
	return fstest.MapFS{"go.mod": file("module m"), "go.sum": file("sums"), "main.go": file("package main")}
}

func component() Component {
	return Component{Name: "etcd", Tags: []string{"a"}, Programs: []Program{{File: "etcd", Package: "."}}}
}

func key(t *testing.T, c Component, m fstest.MapFS, toolchain string) string {
	t.Helper()
	k, err := Key(c, m, toolchain)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTheKeyOfABuildChangesWithWhatChangesTheBinaries(t *testing.T) {
	tests := map[string]struct {
		change    func(*Component, fstest.MapFS)
		toolchain string
		same      bool
	}{
		"nothing changed":          {change: func(*Component, fstest.MapFS) {}, same: true},
		"a requirement changed":    {change: func(_ *Component, m fstest.MapFS) { m["go.mod"] = file("module n") }},
		"a checksum changed":       {change: func(_ *Component, m fstest.MapFS) { m["go.sum"] = file("others") }},
		"a source changed":         {change: func(_ *Component, m fstest.MapFS) { m["main.go"] = file("package other") }},
		"a source was added":       {change: func(_ *Component, m fstest.MapFS) { m["sub/x.go"] = file("package x") }},
		"a source moved":           {change: func(_ *Component, m fstest.MapFS) { m["b.go"] = m["main.go"]; delete(m, "main.go") }},
		"a tag changed":            {change: func(c *Component, _ fstest.MapFS) { c.Tags = []string{"b"} }},
		"a linker flag changed":    {change: func(c *Component, _ fstest.MapFS) { c.LDFlags = []string{"-s"} }},
		"cgo was switched on":      {change: func(c *Component, _ fstest.MapFS) { c.CGO = true }},
		"a program was added":      {change: func(c *Component, _ fstest.MapFS) { c.Programs = append(c.Programs, Program{File: "x"}) }},
		"the toolchain changed":    {change: func(*Component, fstest.MapFS) {}, toolchain: "go1.27"},
		"a test was added":         {change: func(_ *Component, m fstest.MapFS) { m["x_test.go"] = file("package x") }, same: true},
		"a document was added":     {change: func(_ *Component, m fstest.MapFS) { m["README.md"] = file("read") }, same: true},
		"the note on time changed": {change: func(c *Component, _ fstest.MapFS) { c.Note = "quick" }, same: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := key(t, component(), module(), "go1.26")
			c, m := component(), module()
			tc.change(&c, m)
			if tc.toolchain == "" {
				tc.toolchain = "go1.26"
			}
			after := key(t, c, m, tc.toolchain)
			if (before == after) != tc.same {
				t.Errorf("keys %s and %s: got same %t, want %t", before, after, before == after, tc.same)
			}
		})
	}
}

func TestEveryComponentHasANameOfItsOwnAndNoProgramTwice(t *testing.T) {
	seen := map[string]string{}
	for _, c := range slices.Concat(Components(), Extras()) {
		for _, p := range c.Programs {
			for _, name := range append([]string{p.File}, p.Aliases...) {
				if other, ok := seen[name]; ok {
					t.Errorf("program %s: made by both %s and %s", name, other, c.Name)
				}
				seen[name] = c.Name
			}
		}
	}
}
