// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered are the rules that the field knows, by their first and last numbers, and those of this platform alone.
var numbered = [][2]int{{1, 46}, {50, 106}, {107, 109}}

// TestEveryRuleOfTheFieldIsAnswered wants every number to be a rule or to have a row that says what holds instead,
// with tests that exist.
func TestEveryRuleOfTheFieldIsAnswered(t *testing.T) {
	answered := map[string]string{}
	for _, info := range catalogue(t) {
		answered[info.Code] = info.ID
	}
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n### What is no rule here\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| (SBX-\d{3}) \| ([a-z-]+) \| .+ \| (.+) \|$`).FindAllStringSubmatch(section, -1) {
		if other := answered[row[1]]; other != "" {
			t.Errorf("%s is the rule %s, and has a row", row[1], other)
		}
		answered[row[1]] = row[2]
		checkProofs(t, row[1], row[3])
	}
	var want, got []string
	for _, span := range numbered {
		for n := span[0]; n <= span[1]; n++ {
			code := fmt.Sprintf("SBX-%03d", n)
			want = append(want, code)
			if answered[code] != "" {
				got = append(got, code)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(answered) != len(want) {
		t.Errorf("%d rules are answered, want %d (-want +got):\n%s", len(answered), len(want), diff)
	}
}

// checkProofs wants the tests of a row, each a file and a function, to exist.
func checkProofs(t *testing.T, code, cell string) {
	t.Helper()
	proofs := regexp.MustCompile("`([a-z_/]+_test\\.go)` (Test[A-Za-z]+)").FindAllStringSubmatch(cell, -1)
	if len(proofs) != strings.Count(cell, "`")/2 || len(proofs) == 0 {
		t.Errorf("%s: the tests %q cannot be read", code, cell)
	}
	for _, proof := range proofs {
		text, err := os.ReadFile(filepath.Join("..", proof[1]))
		if err != nil || !strings.Contains(string(text), "\nfunc "+proof[2]+"(") {
			t.Errorf("%s: there is no %s in %s (%v)", code, proof[2], proof[1], err)
		}
	}
}
