// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const exempting = `exemptions: [{rule: no-root-name, namespaces: [x], reason: r, owner: ann, expires: "2026-12-31"}]`

// vigilant is a loader whose time the test sets.
func vigilant(t *testing.T, today string) (loader, *clocktesting.FakeClock) {
	t.Helper()
	day, err := time.Parse(time.DateOnly, today)
	if err != nil {
		t.Fatal(err)
	}
	l, c := newLoader(t), clocktesting.NewFakeClock(day)
	l.Clock = c
	return l, c
}

// forgetEvents leaves out the Events so far.
func (l loader) forgetEvents() {
	recorder := l.Events.(*events.FakeRecorder)
	for range len(recorder.Events) {
		<-recorder.Events
	}
}

// gauge is the value of a metric with a label.
func (l loader) gauge(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labelled := func(pair *dto.LabelPair) bool { return pair.GetValue() == label }
			if family.GetName() == name && (label == "" || slices.ContainsFunc(metric.GetLabel(), labelled)) {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func TestExemptionsThatEndAreToldOfAWeekBefore(t *testing.T) {
	for today, want := range map[string]map[string]float64{
		"2026-12-23": {"active": 1, "expiring": 0, "expired": 0, ReasonExemptionExpiring: 0, ReasonExemptionExpired: 0},
		"2026-12-26": {"active": 0, "expiring": 1, "expired": 0, ReasonExemptionExpiring: 1, ReasonExemptionExpired: 0},
		"2027-01-01": {"active": 0, "expiring": 0, "expired": 1, ReasonExemptionExpiring: 0, ReasonExemptionExpired: 1},
	} {
		l, _ := vigilant(t, today)
		l.step(t, "a", map[string]string{"no-root-name.rego": teamRule, ConfigurationKey: exempting})
		l.mu.Lock()
		l.look()
		l.mu.Unlock()
		got := map[string]float64{}
		for _, state := range []string{"active", "expiring", "expired"} {
			got[state] = l.gauge(t, "agent_sandbox_policy_exemptions", state)
		}
		recorder := l.Events.(*events.FakeRecorder)
		all := len(recorder.Events)
		for range all {
			event := <-recorder.Events
			for _, reason := range []string{ReasonExemptionExpiring, ReasonExemptionExpired} {
				if strings.Contains(event, reason+" ") {
					got[reason]++
				}
			}
		}
		got[ReasonExemptionExpiring] += 0
		got[ReasonExemptionExpired] += 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("on %s (-want +got):\n%s", today, diff)
		}
	}
}

func TestTheVigilSeesADayBegin(t *testing.T) {
	l, c := vigilant(t, "2026-12-20")
	l.step(t, "a", map[string]string{"no-root-name.rego": teamRule, ConfigurationKey: exempting})
	l.forgetEvents()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- vigil{l.Source}.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for !c.HasWaiters() {
		runtime.Gosched()
	}
	c.Step(8 * 24 * time.Hour)
	event := <-l.Events.(*events.FakeRecorder).Events
	if !strings.Contains(event, ReasonExemptionExpiring) || !strings.Contains(event, "ask ann") {
		t.Errorf("the first thing told is %q", event)
	}
}

// endless is a rule that never ends for containers called slow.
const endless = `# METADATA
# title: Endless
# description: A rule that does not end.
# custom:
#   id: endless
#   severity: low
#   enforcement: Deny
#   remediation: None.
#   kinds: [Sandbox]
package policies.team.endless

deny contains "never" if {
	some a in input.environment.numbers
	some b in input.environment.numbers
	some c in input.environment.numbers
	some d in input.environment.numbers
	a + b + c + d < 0
}
`

func TestAQuarantineIsToldOnItsConfigMapAndByMetrics(t *testing.T) {
	t.Run("by the only program", func(t *testing.T) { quarantineIsTold(t, false) })
	t.Run("by one beside another that tells of loads", func(t *testing.T) { quarantineIsTold(t, true) })
}

// wearOut lets the endless rule run until it is quarantined. A busy machine may not let it run
// long enough at once to blame it.
func wearOut(t *testing.T, rules *engine.Engine) {
	t.Helper()
	numbers := make([]any, 400)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	for len(rules.Quarantined()) == 0 {
		rules.Evaluate(t.Context(), engine.Input{
			Operation: "CREATE", Kind: engine.KindSandbox, Object: map[string]any{}, Environment: map[string]any{"numbers": numbers},
		})
	}
}

func quarantineIsTold(t *testing.T, beside bool) {
	t.Helper()
	l, _ := vigilant(t, "2026-12-20")
	l.Beside = beside
	notices := make(chan string, 1)
	rules, err := engine.New(engine.WithBudget(400*time.Millisecond, 50*time.Millisecond), engine.WithQuarantineHook(func(rule string) { notices <- rule }))
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	l.Engine, l.Quarantined, l.Changed = rules, notices, func() { changes++ }
	l.step(t, "a", map[string]string{"endless.rego": endless})
	if got := l.gauge(t, "agent_sandbox_policy_ready", ""); got != 1 {
		t.Fatalf("ready is %v before", got)
	}
	if told := len(l.Events.(*events.FakeRecorder).Events) > 0; told == beside {
		t.Errorf("the load is told: %t, beside another: %t", told, beside)
	}
	l.forgetEvents()
	before := rules.Digest()
	wearOut(t, rules)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- vigil{l.Source}.Start(ctx) }()
	event := <-l.Events.(*events.FakeRecorder).Events
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(event, ReasonRuleQuarantined) || !strings.Contains(event, "rule endless") {
		t.Errorf("told: %q", event)
	}
	if held, ready := l.gauge(t, "agent_sandbox_policy_quarantined", "endless"), l.gauge(t, "agent_sandbox_policy_ready", ""); held != 1 || ready != 0 {
		t.Errorf("quarantined %v, ready %v", held, ready)
	}
	if old, now := l.gauge(t, "agent_sandbox_policy_info", before), l.gauge(t, "agent_sandbox_policy_info", rules.Digest()); old != -1 || now != 1 || changes != 2 {
		t.Errorf("digest before %v, now %v, told of %d changes, want the load and the quarantine", old, now, changes)
	}
	l.step(t, "a", map[string]string{"endless.rego": strings.Replace(endless, "a + b", "false; a + b", 1)})
	if held, ready := l.gauge(t, "agent_sandbox_policy_quarantined", "endless"), l.gauge(t, "agent_sandbox_policy_ready", ""); held != -1 || ready != 1 {
		t.Errorf("after a correction: quarantined %v, ready %v", held, ready)
	}
}

// The end of the program comes while a rule goes into quarantine.
func TestTheVigilEndsWhenTheEngineHasNothingToDo(t *testing.T) {
	l, _ := vigilant(t, "2026-12-20")
	ctx, cancel := context.WithCancel(t.Context())
	var finished atomic.Bool
	rules, err := engine.New(engine.WithBudget(400*time.Millisecond, 50*time.Millisecond), engine.WithQuarantineHook(func(string) {
		<-ctx.Done()
		clock.RealClock{}.Sleep(10 * time.Millisecond)
		finished.Store(true)
	}))
	if err != nil {
		t.Fatal(err)
	}
	l.Engine = rules
	l.step(t, "a", map[string]string{"endless.rego": endless})
	wearOut(t, rules)
	cancel()
	if err := (vigil{l.Source}).Start(ctx); err != nil || !finished.Load() {
		t.Errorf("Start() = %v while the engine still works", err)
	}
}

func TestPoliciesThatDidNotLoadAreNotReady(t *testing.T) {
	l := newLoader(t)
	for _, step := range []struct {
		data  map[string]string
		ready float64
	}{
		{map[string]string{"no-root-name.rego": teamRule}, 1},
		{map[string]string{"no-root-name.rego": teamRule + "deny contains 1 if nothing\n"}, 0},
		{map[string]string{ConfigurationKey: "rules: {nobody: {enforcement: Warn}}"}, 0},
		{nil, 0},
	} {
		l.step(t, "a", step.data)
		if got := l.gauge(t, "agent_sandbox_policy_ready", ""); got != step.ready {
			t.Errorf("with %v ready is %v, want %v", step.data, got, step.ready)
		}
	}
}
