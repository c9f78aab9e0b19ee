// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// slowFor is a rule that does not end for objects with the label slow.
func slowFor(text string) engine.Module {
	return ruleFile("a", strings.Replace(endless, "some a in numbers\n", "input.object.metadata.labels.slow == \""+text+"\"\n\tsome a in numbers\n", 1))
}

func TestARuleThatDoesNotEndAgainAndAgainIsQuarantined(t *testing.T) {
	var told []string
	e := newEngine(t, engine.WithBudget(800*time.Millisecond, 50*time.Millisecond), engine.WithQuarantineHook(func(rule string) { told = append(told, rule) }))
	// The other rules take next to nothing of the time.
	few := strings.Replace(withoutLibrary(t), "host-namespaces: {enforcement: 'Off'}, ", "", 1)
	load(t, e, few, slowFor("yes"))
	judge := func(slow string) string {
		in := requestOf(t, "hostPID: true")
		in.Object["metadata"] = map[string]any{"labels": map[string]any{"slow": slow}}
		d := e.Evaluate(context.Background(), in)
		var failures []string
		for _, f := range d.Findings {
			if f.Failure {
				failures = append(failures, f.Rule+": "+f.Message)
			}
		}
		if !strings.Contains(show(t, d), "host-namespaces") {
			t.Errorf("the other rules do not judge: %s", show(t, d))
		}
		return strings.Join(failures, "\n")
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
	if got := judge("no"); !strings.Contains(got, "3 times in a row and is not run any more") {
		t.Errorf("a rule in quarantine is silent: %q", got)
	}
	load(t, e, strings.Replace(few, "{", "{a: {enforcement: Warn}, ", 1), slowFor("yes"))
	if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" {
		t.Errorf("after a load of the same content (-want +got):\n%s", diff)
	}
	load(t, e, few, slowFor("never"))
	if got := judge("yes"); got != "" || len(e.Quarantined()) > 0 {
		t.Errorf("after a correction: %q, quarantined %q", got, e.Quarantined())
	}
}
