// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// The compiler cannot be cancelled. What would keep it for minutes, or for ever, is refused before, and what is just short
// of that is not.
func TestFilesThatTakeLongToCompileAreRefused(t *testing.T) {
	repeat := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	nested := func(n int, open, inner, shut string) string {
		return "deny contains x if { x := " + strings.Repeat(open, n) + inner + strings.Repeat(shut, n) + " }\n"
	}
	cases := map[string]struct {
		rule  func(n int) string
		most  int
		wants string
	}{
		"comprehensions in each other's body": {func(n int) string { return nested(n, "[1|", "true", "]") }, 5, "a.rego:12: comprehensions and every stand 6 deep"},
		"comprehensions in each other's head": {func(n int) string { return nested(n, "{", "1", "|true}") }, 5, "stand 6 deep within each other, at most 5"},
		"every in every": {func(n int) string {
			return "deny contains \"x\" if {\n" + repeat(n, "every x%d in [1] {\nx%[1]d > 0\n") + strings.Repeat("}\n", n) + "}\n"
		}, 5, "stand 6 deep"},
		"comprehensions of an else": {func(n int) string {
			return "deny contains \"x\" if f(1)\n\nf(x) if x > 1\nelse := " + strings.Repeat("[1|", n) + "true" + strings.Repeat("]", n) + "\n"
		}, 5, "stand 6 deep"},
		"expressions in a body": {func(n int) string { return "deny contains \"x\" if {\n" + repeat(n, "input.kind != \"%d\"\n") + "}\n" }, 128, "a body has 129 expressions and calls, at most 128"},
		"expressions of a comprehension": {func(n int) string {
			return "deny contains x if {\n\tx := [1 |\n" + repeat(n, "input.kind != \"%d\"\n") + "]\n}\n"
		}, 128, "a body has 129"},
		"parts of a sum":  {func(n int) string { return "deny contains x if x := 1" + strings.Repeat("+1", n-1) + "\n" }, 128, "a body has 129"},
		"parts of a text": {func(n int) string { return "deny contains $`" + strings.Repeat("{input.kind}", n-1) + "` if true\n" }, 128, "a body has 129"},
		"else after another": {func(n int) string {
			return "deny contains \"x\" if f(1) == 2\n\nf(x) := 1 if x == 0\n" + repeat(n, "else := %d if x == %[1]d\n")
		}, 100, "a.rego:14: the rule has 101 else, at most 100"},
		"bytes": {func(n int) string {
			const rule = "deny contains \"x\" if input.kind\n#"
			return rule + strings.Repeat("x", n-len(header("a", "Deny")+rule))
		}, 64 << 10, "configmap/platform/extra/a.rego: the file has 65537 bytes, at most 65536 are read: split it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for n, want := range map[int]string{tc.most: "", tc.most + 1: tc.wants} {
				report := loadAlone(t, newEngine(t), ruleFile("a", tc.rule(n)))
				var reason string
				if len(report.Broken) > 0 {
					reason = report.Broken[0].Reason
				}
				if !strings.Contains(reason, want) || (want == "" && reason != "") {
					t.Errorf("%d: broken because %q, want %q", n, reason, want)
				}
			}
		})
	}
}

func TestAMaskThatTakesLongToCompileIsRefused(t *testing.T) {
	_, err := engine.NewMask(t.Context(), "mask.rego", []byte("package system.log\n\nmask contains x if x := "+strings.Repeat("[1|", 20)+"true"+strings.Repeat("]", 20)+"\n"))
	if err == nil || !strings.Contains(err.Error(), "mask.rego:3: comprehensions and every stand 20 deep") {
		t.Errorf("error %v", err)
	}
}
