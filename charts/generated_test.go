// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the README takes from elsewhere into it")

// requireInReadme compares a part of the README, between <!-- name --> and <!-- /name -->,
// with what it is made from, or writes it there.
func requireInReadme(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(chartDir, "README.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, begins := strings.Cut(string(data), start)
	written, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for this, between %q and %q", path, start, end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+start+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("the README is old; run make generate (-made +README):\n%s", diff)
	}
}
