// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// slowFor is a rule that does not end for objects with the label slow.
func slowFor(text string) engine.Module {
	return slow("a", text)
}

func slow(id, text string) engine.Module {
	return ruleFile(id, fmt.Sprintf("deny contains \"found\" if {\n\tinput.object.metadata.labels.slow == %q\n\ttest.hold(\"a\")\n}\n", text))
}

// judgeSlow evaluates an object with the label slow.
func judgeSlow(t *testing.T, e *engine.Engine, text string) engine.Decision {
	t.Helper()
	in := requestOf(t, "hostPID: true")
	in.Object["metadata"] = map[string]any{"labels": map[string]any{"slow": text}}
	return e.Evaluate(context.Background(), in)
}

// A dry run leaves nothing behind, and who tries things out does not decide for others.
func TestDryRunsPutNoRuleIntoQuarantine(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		e := newEngine(t, engine.WithConcurrency(100))
		load(t, e, "", slowFor("yes"))
		in := requestOf(t, "hostPID: true")
		in.Object["metadata"] = map[string]any{"labels": map[string]any{"slow": "yes"}}
		in.DryRun = true
		for range 4 {
			if got := failuresOf(e.Evaluate(context.Background(), in)); len(got) != 1 {
				t.Errorf("failures of a dry run: %q", got)
			}
			synctest.Wait()
		}
		if got := e.Quarantined(); len(got) > 0 {
			t.Errorf("%q are in quarantine", got)
		}
		h.Release()
	})
}

func TestARuleThatDoesNotEndAgainAndAgainIsQuarantined(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		var told []string
		e := newEngine(t, engine.WithConcurrency(100), engine.WithQuarantineHook(func(rule string) { told = append(told, rule) }))
		load(t, e, "", slowFor("yes"))
		judge := func(slow string) string {
			d := judgeSlow(t, e, slow)
			synctest.Wait()
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
		engine.ForgetModules()
		load(t, e, "", slowFor("yes"))
		if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" {
			t.Errorf("after the same content was compiled anew (-want +got):\n%s", diff)
		}
		load(t, e, "", slowFor("never"))
		if got := judge("yes"); got != "" || len(e.Quarantined()) > 0 {
			t.Errorf("after a correction: %q, quarantined %q", got, e.Quarantined())
		}
		h.Release()
	})
}

// The set is put together again beside the requests: the third one that a rule spoils has its answer before.
func TestNoRequestWaitsForAQuarantine(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		e := newEngine(t, engine.WithConcurrency(100))
		load(t, e, "", slowFor("yes"))
		judgeSlow(t, e, "yes")
		judgeSlow(t, e, "yes")
		release := e.HoldLoading()
		if got := failuresOf(judgeSlow(t, e, "yes")); len(got) != 1 || !strings.Contains(got[0], "it did not finish in time, with its whole time") {
			t.Errorf("the request that trips: %q", got)
		}
		if got := e.Quarantined(); len(got) > 0 {
			t.Errorf("%q are in quarantine before anything could be put together", got)
		}
		release()
		synctest.Wait()
		if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" {
			t.Errorf("quarantined (-want +got):\n%s", diff)
		}
		h.Release()
	})
}

// Whatever else happens at the moment in which a rule trips, it ends up in quarantine, and is told once.
func TestNoTripIsLost(t *testing.T) {
	cases := map[string]struct {
		modules []engine.Module
		// meanwhile is loaded while the last evaluation runs.
		meanwhile     []engine.Module
		configuration string
		want          []string
	}{
		"a set that is loaded while the rule runs": {
			modules: []engine.Module{slowFor("yes")}, meanwhile: []engine.Module{slowFor("yes")},
			configuration: "rules: {a: {enforcement: Warn}}", want: []string{"a"},
		},
		"two rules of one request": {modules: []engine.Module{slowFor("yes"), slow("b", "yes")}, want: []string{"a", "b"}},
		"content that is corrected meanwhile": {
			modules:   []engine.Module{slowFor("yes"), slow("b", "yes")},
			meanwhile: []engine.Module{slowFor("never"), slow("b", "yes")}, want: []string{"b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, h *engine.Hold) {
				t.Helper()
				var told []string
				e := newEngine(t, engine.WithConcurrency(100), engine.WithQuarantineHook(func(rule string) { told = append(told, rule) }))
				load(t, e, "", tc.modules...)
				judgeSlow(t, e, "yes")
				judgeSlow(t, e, "yes")
				calls := h.Calls()
				answered := make(chan struct{})
				go func() {
					judgeSlow(t, e, "yes")
					close(answered)
				}()
				synctest.Wait()
				if h.Calls() == calls {
					t.Fatal("the evaluation does not run")
				}
				if tc.meanwhile != nil {
					load(t, e, tc.configuration, tc.meanwhile...)
				}
				<-answered
				synctest.Wait()
				if diff := cmp.Diff(tc.want, e.Quarantined()); diff != "" {
					t.Errorf("quarantined (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.want, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				h.Release()
			})
		})
	}
}

// At the end of the program what is being put together is finished, and nothing more is begun.
func TestTheEndOfAnEngineWaitsForItsQuarantines(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		gate, told := make(chan struct{}), make(chan string, 10)
		e := newEngine(t, engine.WithConcurrency(100), engine.WithQuarantineHook(func(rule string) {
			<-gate
			told <- rule
		}))
		load(t, e, "", slowFor("yes"), slow("b", "also"))
		for range 3 {
			judgeSlow(t, e, "yes")
		}
		synctest.Wait() // until it waits in the hook
		closed := make(chan struct{})
		go func() {
			e.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while a rule goes into quarantine")
		default:
		}
		for range 3 {
			judgeSlow(t, e, "also")
		}
		close(gate)
		<-closed
		synctest.Wait()
		if diff := cmp.Diff([]string{"a"}, e.Quarantined()); diff != "" || len(told) != 1 {
			t.Errorf("quarantined after the end (-want +got):\n%s, %d are told", diff, len(told))
		}
		e.Close()
		h.Release()
	})
}

// Nobody can correct the content of a rule of the library: in quarantine it would refuse everything until a restart.
func TestARuleOfTheLibraryIsRunAgainHoweverOftenItDoesNotEnd(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		e := newEngine(t, engine.WithConcurrency(100))
		ours := slowFor("yes")
		ours.Source = engine.SourceLibrary
		load(t, e, "", ours)
		for range 5 {
			if got := failuresOf(judgeSlow(t, e, "yes")); len(got) != 1 || !strings.Contains(got[0], "with its whole time to itself") {
				t.Errorf("failures: %q", got)
			}
			synctest.Wait()
		}
		if got := e.Quarantined(); len(got) > 0 {
			t.Errorf("%q are in quarantine", got)
		}
		if got := failuresOf(judgeSlow(t, e, "no")); len(got) > 0 {
			t.Errorf("an object that the rule can judge: %q", got)
		}
		h.Release()
	})
}

// Where there is no place, a rule has not had its time.
func TestWaitingForAPlaceCountsAgainstNoRule(t *testing.T) {
	within(t, func(t *testing.T, first *engine.Hold) {
		t.Helper()
		first.Release()
		e := newEngine(t, engine.WithConcurrency(1))
		load(t, e, withoutLibrary(t), slowFor("yes"), ruleFile("b", "deny contains \"found\" if false\n"))
		for range 3 {
			h := engine.NewHold(t, "a")
			// The evaluation of all rules together is left behind in the only place.
			for _, got := range failuresOf(judgeSlow(t, e, "yes")) {
				if strings.Contains(got, "with its whole time to itself") {
					t.Errorf("a rule that did not run: %q", got)
				}
			}
			h.Release()
			synctest.Wait()
		}
		if got := e.Quarantined(); len(got) > 0 {
			t.Errorf("%q are in quarantine", got)
		}
	})
}
