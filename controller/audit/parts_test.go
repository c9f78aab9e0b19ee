// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestVerdictOfFindings(t *testing.T) {
	failure := found("broken", engine.Deny)
	failure.Failure = true
	cases := map[string]struct {
		findings []engine.Finding
		want     verdict.Verdict
	}{
		"nothing to say":                     {nil, verdict.Verdict{State: verdict.Admitted}},
		"what only warns and records admits": {[]engine.Finding{found("a", engine.Warn), found("b", engine.Audit)}, verdict.Verdict{State: verdict.Admitted}},
		"what denies refuses":                {[]engine.Finding{found("a", engine.Warn), found("b", engine.Deny)}, verdict.Verdict{State: verdict.Refused, Reason: "b: spec.x: broken"}},
		"a rule that failed leaves it open":  {[]engine.Finding{failure}, verdict.Verdict{Reason: "broken: spec.x: broken"}},
		"a refusal stands beside a rule that failed": {
			[]engine.Finding{failure, found("b", engine.Deny)}, verdict.Verdict{State: verdict.Refused, Reason: "b: spec.x: broken"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sandboxWith("s", tc.findings...).verdict()); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeriesOfAViolationGoWithIt(t *testing.T) {
	m := newMetrics(func() int { return 0 }, func() float64 { return 0 })
	registry := prometheus.NewRegistry()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	lesser := found("r", engine.Deny)
	lesser.Severity = engine.Low
	steps := []struct {
		what, namespace string
		entries         []*entry
		want            []string
	}{
		{"an object counts once", "one", []*entry{
			sandboxWith("a", found("r", engine.Deny), found("r", engine.Deny), found("s", engine.Warn)), sandboxWith("b", found("r", engine.Deny)),
		}, []string{"one r high Deny 2", "one s high Warn 1"}},
		{"another namespace", "two", []*entry{sandboxWith("a", found("r", engine.Deny))}, []string{"one r high Deny 2", "one s high Warn 1", "two r high Deny 1"}},
		{"each severity of a rule is one of its own", "two", []*entry{sandboxWith("a", found("r", engine.Deny), lesser), sandboxWith("b", lesser)}, []string{
			"one r high Deny 2", "one s high Warn 1", "two r high Deny 1", "two r low Deny 2",
		}},
		{"another severity of a rule goes", "two", []*entry{sandboxWith("a", lesser)}, []string{"one r high Deny 2", "one s high Warn 1", "two r low Deny 1"}},
		{"one rule is content", "one", []*entry{sandboxWith("a", found("s", engine.Warn))}, []string{"one s high Warn 1", "two r low Deny 1"}},
		{"a namespace is gone", "two", nil, []string{"one s high Warn 1"}},
		{"nothing is left", "one", nil, nil},
	}
	for _, step := range steps {
		m.publish(step.namespace, violations(step.entries))
		if diff := cmp.Diff(step.want, published(t, registry)); diff != "" {
			t.Errorf("%s: series (-want +got):\n%s", step.what, diff)
		}
	}
}

// published are the series of violations, sorted.
func published(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var series []string
	for _, family := range families {
		if family.GetName() != "agent_sandbox_policy_violations" {
			continue
		}
		for _, metric := range family.GetMetric() {
			label := map[string]string{}
			for _, pair := range metric.GetLabel() {
				label[pair.GetName()] = pair.GetValue()
			}
			series = append(series, fmt.Sprintf("%s %s %s %s %v", label["namespace"], label["rule"], label["severity"], label["enforcement"], metric.GetGauge().GetValue()))
		}
	}
	slices.Sort(series)
	return series
}

func TestPausesKeepWorkToItsShare(t *testing.T) {
	for name, tc := range map[string]struct {
		share        float64
		work, paused time.Duration
	}{
		"a tenth is nine pauses for one work": {0.1, 10 * time.Millisecond, 90 * time.Millisecond},
		"a half is as much":                   {0.5, 30 * time.Millisecond, 30 * time.Millisecond},
		"all of it is none":                   {1, time.Second, 0},
		"little is saved up":                  {0.5, time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var worked time.Duration
				p := &pacer{clock: clock.RealClock{}, share: tc.share, worked: func(work time.Duration) { worked += work }}
				p.begin()
				watch := clock.RealClock{}
				watch.Sleep(tc.work)
				begun := watch.Now()
				if err := p.pause(t.Context()); err != nil || worked != tc.work {
					t.Errorf("pause() = %v after %s of work, want %s", err, worked, tc.work)
				}
				if paused := watch.Since(begun); paused != tc.paused {
					t.Errorf("the pause was %s, want %s", paused, tc.paused)
				}
			})
		})
	}
	t.Run("the end of the process ends a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pacer{clock: clock.RealClock{}, share: 0.001}
			p.begin()
			clock.RealClock{}.Sleep(time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			watch := clock.RealClock{}
			begun := watch.Now()
			time.AfterFunc(time.Minute, cancel)
			if err := p.pause(ctx); !errors.Is(err, context.Canceled) || watch.Since(begun) != time.Minute {
				t.Errorf("pause() = %v after %s, want that it was cancelled after a minute", err, watch.Since(begun))
			}
		})
	})
}

func TestTheLedgerForgetsWhatIsGone(t *testing.T) {
	l := newLedger()
	for _, namespace := range []string{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			if before := l.put(namespace, sandboxWith(name)); before != nil {
				t.Errorf("something was known of %s/%s before", namespace, name)
			}
		}
	}
	l.keep("one", sets.New[types.UID]("uid-a", "uid-x"))
	l.drop("two", "uid-a")
	l.drop("three", "uid-a")
	if l.size() != 2 || l.get("one", "uid-a") == nil || l.get("two", "uid-b") == nil {
		t.Errorf("%d are known, want a of one and b of two", l.size())
	}
	again := sandboxWith("a", found("r", engine.Warn))
	if before := l.put("one", again); before == nil || l.get("one", "uid-a") != again {
		t.Error("the second entry did not replace the first")
	}
	l.keep("one", nil)
	if len(l.of("one")) != 0 || len(l.namespaces) != 1 {
		t.Errorf("%d namespaces are known, want 1", len(l.namespaces))
	}
}

func TestAJudgementHoldsAsLongAsWhatItRestsOn(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	failure := found("broken", engine.Deny)
	failure.Failure = true
	seen := newVersions()
	seen.changed(engine.DataNamespaces, "")
	seen.changed(engine.DataTemplates, "one")
	cases := map[string]struct {
		valid        engine.Validity
		findings     []engine.Finding
		change       func(*versions)
		holds, stale bool
	}{
		"nothing else decided":                   {change: func(v *versions) { v.changed(engine.DataTemplates, "one") }, holds: true},
		"a rule failed":                          {findings: []engine.Finding{failure}},
		"an exemption ends later":                {valid: engine.Validity{Until: now.Add(time.Second)}, holds: true},
		"an exemption ends now":                  {valid: engine.Validity{Until: now}},
		"what was read of the namespace changed": {valid: engine.Validity{Read: []engine.Data{engine.DataTemplates}}, change: func(v *versions) { v.changed(engine.DataTemplates, "one") }},
		"what was read of the cluster changed":   {valid: engine.Validity{Read: []engine.Data{engine.DataNamespaces}}, change: func(v *versions) { v.changed(engine.DataNamespaces, "") }},
		"the same of another namespace changed":  {valid: engine.Validity{Read: []engine.Data{engine.DataTemplates}}, change: func(v *versions) { v.changed(engine.DataTemplates, "two") }, holds: true},
		"something else changed":                 {valid: engine.Validity{Read: []engine.Data{engine.DataTemplates}}, change: func(v *versions) { v.changed(engine.DataPools, "one") }, holds: true},
		"a rule read the time":                   {valid: engine.Validity{Timed: true}, holds: true, stale: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := sandboxWith("s", tc.findings...)
			e.at, e.valid, e.vintage = now.Add(-timed), tc.valid, seen.of("one")
			if tc.change != nil {
				tc.change(seen)
			}
			if got := e.holds(known{vintage: seen.of("one")}, now); got != tc.holds {
				t.Errorf("it holds: %t, want %t", got, tc.holds)
			}
			if got := e.stale(now); got != tc.stale {
				t.Errorf("it is stale: %t, want %t", got, tc.stale)
			}
		})
	}
}

func TestTheNextEndOfAnExemptionIsTheFirstOne(t *testing.T) {
	soon, later := sandboxWith("a"), sandboxWith("b")
	soon.valid.Until = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	later.valid.Until = soon.valid.Until.AddDate(0, 0, 1)
	if got := ends([]*entry{sandboxWith("c"), later, soon}); !got.Equal(soon.valid.Until) {
		t.Errorf("it ends at %s, want %s", got, soon.valid.Until)
	}
	if got := ends([]*entry{sandboxWith("c")}); !got.IsZero() {
		t.Errorf("it ends at %s, want never", got)
	}
}

func TestEveryStateThatRulesSeeHasAFingerprintOfItsOwn(t *testing.T) {
	base := func() *agentsv1beta1.Sandbox {
		return &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
			UID: "u", Generation: 1, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		}}
	}
	sums := map[uint64]string{}
	for name, edit := range map[string]func(*agentsv1beta1.Sandbox){
		"as it is":                          func(*agentsv1beta1.Sandbox) {},
		"another one":                       func(s *agentsv1beta1.Sandbox) { s.UID = "v" },
		"another spec":                      func(s *agentsv1beta1.Sandbox) { s.Generation = 2 },
		"another label":                     func(s *agentsv1beta1.Sandbox) { s.Labels["a"] = "c" },
		"the label as an annotation":        func(s *agentsv1beta1.Sandbox) { s.Labels, s.Annotations = nil, map[string]string{"a": "b", "c": "d"} },
		"key and value run into each other": func(s *agentsv1beta1.Sandbox) { s.Labels = map[string]string{"ab": ""} },
		"another owner": func(s *agentsv1beta1.Sandbox) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", UID: "o", Controller: new(true)}}
		},
	} {
		sandbox := base()
		edit(sandbox)
		f := newFingerprint()
		f.object(sandbox)
		if other, taken := sums[f.sum()]; taken {
			t.Errorf("%q and %q have the same fingerprint", name, other)
		}
		sums[f.sum()] = name
	}
	status := base()
	status.ResourceVersion, status.Status.PodIPs = "7", []string{"10.0.0.1"}
	f := newFingerprint()
	f.object(status)
	if sums[f.sum()] != "as it is" {
		t.Error("a status makes another state, so that every one of them would be judged")
	}
}

func TestTheAuditJudgesByNothingThatIsBeingDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := extensionsv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deleted := metav1.ObjectMeta{
		Namespace: "team-a", Name: "held", Finalizers: []string{"example.com/hold"}, DeletionTimestamp: new(metav1.Now()),
	}
	reads := cached{reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&extensionsv1beta1.SandboxTemplate{ObjectMeta: deleted}, &extensionsv1beta1.SandboxWarmPool{ObjectMeta: deleted}).Build()}
	for kind, read := range map[string]func(context.Context, string, string) (map[string]any, error){
		"a template": reads.Template, "a pool": reads.Pool,
	} {
		if found, err := read(t.Context(), "team-a", "held"); err != nil || found != nil {
			t.Errorf("%s: found %v, %v, want none", kind, found, err)
		}
	}
}
