// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// crowded is a Sandbox whose Pod has many volumes that are refused, and as many of everything that a copy
// of the Pod would copy along.
func crowded(tb testing.TB, count int) engine.Input {
	tb.Helper()
	entries := func(list, entry string) string {
		return list + ": [" + strings.TrimSuffix(strings.Repeat(entry+", ", count), ", ") + "]"
	}
	return requestOf(tb, entries("volumes", "{name: a, hostPath: {path: /}}"), entries("tolerations", "{key: a}"),
		fmt.Sprintf("securityContext: {seLinuxOptions: {user: x}, sysctls: [%s]}", strings.Repeat("{name: kernel.a, value: b}, ", count)))
}

// allocated is how many bytes a function allocates, which, unlike its time, does not depend on the machine.
func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What one request costs grows with its length and not with the product of its lists. Both levels and all
// rules judge.
func TestACrowdedPodCostsWhatItsLengthCosts(t *testing.T) {
	const most, growth = 100 << 20, 2.5
	e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
	load(t, e, "")
	cost := func(count int) uint64 {
		in := crowded(t, count)
		in.Tier = map[string]any{"podSecurity": map[string]any{"deny": "restricted", "version": "v1.37"}}
		return allocated(func() {
			d := e.Evaluate(context.Background(), in)
			if !d.Denied() || slices.ContainsFunc(d.Findings, func(f engine.Finding) bool { return f.Failure }) {
				t.Errorf("want the volumes to be refused and no failure, got %s", show(t, briefs(d.Findings)))
			}
		})
	}
	cost(100)
	half, whole := cost(2000), cost(4000)
	t.Logf("4,000 volumes and tolerations cost %d MB", whole>>20)
	if whole > most {
		t.Errorf("4,000 volumes and tolerations cost %d MB, want at most %d", whole>>20, most>>20)
	}
	if got := float64(whole) / float64(half); got > growth {
		t.Errorf("twice the Pod costs %.1f times as much (%d and %d MB), want at most %.1f", got, half>>20, whole>>20, growth)
	}
}

// A claim's variables are its own and the Pod's, and each may be set twice.
func TestACrowdedClaimCostsWhatItsLengthCosts(t *testing.T) {
	const growth = 2.5
	e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
	load(t, e, "rules: {claim-env: {parameters: {maxEntries: 1}}}")
	cost := func(count int) uint64 {
		var variables []any
		for i := range count {
			variables = append(variables, map[string]any{"name": fmt.Sprintf("A%d_TOKEN", i/2), "value": strings.Repeat("x", 10+i)})
		}
		in := requestOf(t)
		in.Kind, in.PodPath, in.Template = engine.KindSandboxClaim, "template.spec.podTemplate", in.Object
		in.Object = map[string]any{"spec": map[string]any{"env": variables}}
		in.Pod = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a:1", "env": variables}}}}
		return allocated(func() {
			d := e.Evaluate(context.Background(), in)
			text := show(t, d.Findings)
			if strings.Contains(text, `"failure"`) || !strings.Contains(text, "is set twice") || !strings.Contains(text, "variables, at most 1") {
				t.Errorf("want too many variables, some of them twice, and no failure, got %s", text)
			}
		})
	}
	cost(100)
	half, whole := cost(500), cost(1000)
	if got := float64(whole) / float64(half); got > growth {
		t.Errorf("twice the variables cost %.1f times as much (%d and %d MB), want at most %.1f", got, half>>20, whole>>20, growth)
	}
}

// The checks of the Pod Security Standards have the same time as the rules; an object that they did not
// finish with is refused.
func TestPodSecurityEndsWithItsTime(t *testing.T) {
	e := newEngine(t)
	load(t, e, "")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	d := e.Evaluate(ended, requestOf(t))
	for _, f := range d.Denials() {
		if f.Rule == engine.RulePSSBaseline && f.Failure && strings.Contains(f.Message, "did not finish in time") {
			return
		}
	}
	t.Errorf("want a failure of %s that denies, got %s", engine.RulePSSBaseline, show(t, d.Findings))
}
