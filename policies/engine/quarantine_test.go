// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// slowFor is a rule that does not end for objects with the label slow.
func slowFor(text string) engine.Module {
	return ruleFile("a", fmt.Sprintf("deny contains \"found\" if {\n\tinput.object.metadata.labels.slow == %q\n\ttest.hold(\"a\")\n}\n", text))
}

func TestARuleThatDoesNotEndAgainAndAgainIsQuarantined(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		var told []string
		e := newEngine(t, engine.WithConcurrency(100), engine.WithQuarantineHook(func(rule string) { told = append(told, rule) }))
		load(t, e, "", slowFor("yes"))
		judge := func(slow string) string {
			in := requestOf(t, "hostPID: true")
			in.Object["metadata"] = map[string]any{"labels": map[string]any{"slow": slow}}
			d := e.Evaluate(context.Background(), in)
			if !strings.Contains(show(t, d), "host-namespaces") {
				t.Errorf("the other rules do not judge: %s", show(t, d))
			}
			return strings.Join(failuresOf(d), "\n")
		}
		for range 2 {
			if got := judge("yes"); !strings.Contains(got, "a: rule a could not be evaluated: it did not finish in time") {
				t.Fatalf("failures: %q", got)
			}
		}
		if got := judge("no"); got != "" {
			t.Fatalf("an object that the rule can judge: %q", got)
		}
		if judge("yes"); len(told) != 1 || told[0] != "a" {
			t.Fatalf("told %q after three in all", told)
		}
		if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" {
			t.Errorf("quarantined (-want +got):\n%s", diff)
		}
		calls := h.Calls()
		if got := judge("yes"); !strings.Contains(got, "3 times and is not run any more") || h.Calls() != calls {
			t.Errorf("a rule in quarantine is silent, or is called %d times: %q", h.Calls()-calls, got)
		}
		load(t, e, "rules: {a: {enforcement: Warn}}", slowFor("yes"))
		if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" {
			t.Errorf("after a load of the same content (-want +got):\n%s", diff)
		}
		load(t, e, "", slowFor("never"))
		if got := judge("yes"); got != "" || len(e.Quarantined()) > 0 {
			t.Errorf("after a correction: %q, quarantined %q", got, e.Quarantined())
		}
		h.Release()
	})
}
