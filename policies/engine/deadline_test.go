// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// held is a rule that hears of no cancellation: it finds something once the hold of its name lets it go.
func held() engine.Module {
	return ruleFile("a", "deny contains \"found\" if test.hold(\"a\")\n")
}

// within runs a test in a time of its own, which passes when all that it started waits.
func within(t *testing.T, test func(t *testing.T, h *engine.Hold)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := engine.NewHold(t, "a")
		test(t, h)
		synctest.Wait()
		if h.Held() > 0 {
			t.Errorf("%d evaluations are left behind for good", h.Held())
		}
	})
}

// failuresOf are the messages of the rules that failed, with the enforcement of each.
func failuresOf(d engine.Decision) []string {
	var failures []string
	for _, f := range d.Findings {
		if f.Failure {
			failures = append(failures, fmt.Sprintf("%s %s: %s", f.Enforcement, f.Rule, f.Message))
		}
	}
	return failures
}

func TestARuleThatCannotBeCancelledDoesNotHoldUpTheAnswer(t *testing.T) {
	const budget, grace = 8 * time.Second, 100 * time.Millisecond
	for _, enforcement := range []engine.Enforcement{engine.Deny, engine.Warn, engine.Audit} {
		t.Run(string(enforcement), func(t *testing.T) {
			within(t, func(t *testing.T, h *engine.Hold) {
				t.Helper()
				e := newEngine(t, engine.WithBudget(budget, grace))
				load(t, e, fmt.Sprintf("rules: {a: {enforcement: %s}}", enforcement), held())
				watch := clock.RealClock{}
				begun := watch.Now()
				d := e.Evaluate(context.Background(), requestOf(t, "hostPID: true"))
				// Once beside the others, and once alone.
				if took, want := watch.Since(begun), budget/2+budget/8+2*grace; took != want || took > budget+grace {
					t.Errorf("the answer took %s, want %s", took, want)
				}
				want := []string{fmt.Sprintf("%s a: rule a could not be evaluated: it did not finish in time, with its whole time to itself", enforcement)}
				if diff := cmp.Diff(want, failuresOf(d)); diff != "" {
					t.Errorf("failures (-want +got):\n%s", diff)
				}
				if !strings.Contains(fmt.Sprint(briefs(d.Findings)), "host-namespaces") {
					t.Errorf("the other rules did not judge: %s", show(t, d.Findings))
				}
				if h.Held() != 2 {
					t.Errorf("%d evaluations hang, want both", h.Held())
				}
				h.Release()
			})
		})
	}
}

func TestEvaluationsBeyondTheirNumberWaitAndFail(t *testing.T) {
	const budget, places = 8 * time.Second, 2
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		e := newEngine(t, engine.WithConcurrency(places), engine.WithBudget(budget, time.Second))
		load(t, e, withoutLibrary(t), held())
		decide := func(decisions chan<- engine.Decision) { decisions <- e.Evaluate(context.Background(), requestOf(t)) }
		first, last := make(chan engine.Decision, places), make(chan engine.Decision, places)
		for range places {
			go decide(first)
		}
		synctest.Wait()
		if h.Held() != places {
			t.Fatalf("%d evaluations run, want %d at the same time", h.Held(), places)
		}
		watch := clock.RealClock{}
		begun := watch.Now()
		d := e.Evaluate(context.Background(), requestOf(t))
		if took := watch.Since(begun); took != budget || !d.Denied() || !strings.Contains(show(t, d), "too many evaluations at the same time") || h.Calls() != places {
			t.Errorf("one more: after %s and %d calls %s", took, h.Calls(), show(t, failuresOf(d)))
		}
		for range places {
			if d := <-first; !d.Denied() {
				t.Errorf("an evaluation that hangs allowed: %s", show(t, d))
			}
		}

		for range places {
			go decide(last)
		}
		synctest.Wait()
		if len(last) > 0 || h.Calls() != places {
			t.Errorf("%d decided in the place of those that hang, with %d calls", len(last), h.Calls())
		}
		h.Release()
		for range places {
			d := <-last
			if diff := cmp.Diff([]brief{{Rule: "a", Enforcement: "Deny"}}, briefs(d.Findings)); diff != "" || len(failuresOf(d)) > 0 {
				t.Errorf("findings of one that waited (-want +got):\n%s\n%s", diff, failuresOf(d))
			}
		}
	})
}
