// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// threeContainers is the Sandbox of the benchmarks, about 2.5 KB of JSON.
func threeContainers(tb testing.TB) engine.Input {
	tb.Helper()
	var containers strings.Builder
	for _, name := range []string{"agent", "browser", "proxy"} {
		fmt.Fprintf(&containers, `
- name: %s
  image: registry.example.com/team/%s@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  args: [--listen, ":8080", --workspace, /workspace]
  env: [{name: HOME, value: /workspace}, {name: MODE, value: agent}, {name: PROXY, value: "http://127.0.0.1:3128"}]
  ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
  resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 128Mi}}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, runAsUser: 1000}
  readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
  volumeMounts: [{name: workspace-volume, mountPath: /workspace}, {name: tmp, mountPath: /tmp}]`, name, name)
	}
	return requestOf(tb, "containers:"+containers.String(), "volumes: [{name: tmp, emptyDir: {sizeLimit: 1Gi}}]",
		"securityContext: {seccompProfile: {type: RuntimeDefault}}")
}

// copies makes more rules of the cost of those in the library.
func copies(n int) []engine.Module {
	var modules []engine.Module
	for i := range n {
		modules = append(modules, ruleFile(fmt.Sprintf("extra%d", i), `
import data.lib.containers

deny contains finding if {
	some path, container in containers.by_path
	value := container.securityContext.privileged
	not value in {null, false}
	finding := {
		"message": sprintf("%s runs privileged", [containers.label(container)]),
		"field": sprintf("%s.securityContext.privileged", [path]),
		"value": value,
	}
}
`))
	}
	return modules
}

// ofAnotherKind makes the rules judge claims only.
func ofAnotherKind(modules []engine.Module) []engine.Module {
	for i := range modules {
		modules[i].Content = []byte(strings.Replace(string(modules[i].Content), "[Sandbox]", "[SandboxClaim]", 1))
	}
	return modules
}

// withoutLibrary is a configuration that turns the rules of the library off: what is measured is then the rules
// that a benchmark adds, beside the Pod Security Standards.
func withoutLibrary(tb testing.TB) string {
	tb.Helper()
	var rules []string
	for _, info := range loaded(tb, "").Catalogue() {
		if !strings.HasPrefix(info.ID, "pss-") {
			rules = append(rules, info.ID+": {enforcement: 'Off'}")
		}
	}
	return "rules: {" + strings.Join(rules, ", ") + "}"
}

// TestEvaluateAllocations bounds what one decision allocates: unlike its time, that does not depend on the
// machine.
func TestEvaluateAllocations(t *testing.T) {
	const mostOfRequest, mostOfLibraryRule = 1025, 22
	in := threeContainers(t)
	library := loaded(t, "")
	for _, kind := range []string{engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxClaim, engine.KindSandboxWarmPool} {
		judged := ofKind(in, kind)
		rules := len(library.Evaluate(context.Background(), judged).Evaluated)
		got, most := allocations(library, judged), mostOfRequest+mostOfLibraryRule*rules
		if got > float64(most) {
			t.Errorf("%.0f allocations for a %s with the %d rules of the library that are on, want at most %d", got, kind, rules, most)
		}
		t.Logf("%.0f allocations for a %s with %d rules of the library", got, kind, rules)
	}
}

func allocations(e *engine.Engine, in engine.Input) float64 {
	return testing.AllocsPerRun(20, func() { e.Evaluate(context.Background(), in) })
}

// TestEvaluateAllocationsByRules bounds what a decision allocates by as many rules of three containers, of a Sandbox and
// of a claim with the same Pod. README.md tells what that is.
func TestEvaluateAllocationsByRules(t *testing.T) {
	const mostOfOneRule = 8
	most := map[string]map[int]float64{
		engine.KindSandbox:      {5: 890, 40: 1150, 200: 2350},
		engine.KindSandboxClaim: {5: 840, 40: 1100, 200: 2300},
	}
	none := withoutLibrary(t)
	for kind, bounds := range most {
		in, got := ofKind(threeContainers(t), kind), map[int]float64{}
		for rules, bound := range bounds {
			modules := copies(rules)
			if kind == engine.KindSandboxClaim {
				modules = ofAnotherKind(modules)
			}
			if got[rules] = allocations(loaded(t, none, modules...), in); got[rules] > bound {
				t.Errorf("%.0f allocations for a %s by %d rules, want at most %.0f", got[rules], kind, rules, bound)
			}
		}
		if one := (got[200] - got[40]) / 160; one > mostOfOneRule {
			t.Errorf("a rule that visits three containers of a %s costs %.1f allocations, want at most %d", kind, one, mostOfOneRule)
		}
		t.Logf("allocations for a %s: %.0f by 5 rules, %.0f by 40, %.0f by 200", kind, got[5], got[40], got[200])
	}
}

// TestRulesOfAnotherKindCostNothing holds that none of them is evaluated, and that a decision allocates no more for them;
// one that no rule concerns does not even read its input.
func TestRulesOfAnotherKindCostNothing(t *testing.T) {
	const others = 160
	in, none := threeContainers(t), withoutLibrary(t)
	alone, beside := loaded(t, none, copies(40)...), loaded(t, none, append(copies(40), ofAnotherKind(copies(40 + others)[40:])...)...)
	if diff := cmp.Diff(alone.Evaluate(context.Background(), in).Evaluated, beside.Evaluate(context.Background(), in).Evaluated); diff != "" {
		t.Errorf("rules that are evaluated (-without others +with):\n%s", diff)
	}
	if cost := allocations(beside, in) - allocations(alone, in); cost > 1 {
		t.Errorf("%d rules of another kind cost %.0f allocations, want none", others, cost)
	}
	const most = 10
	claim := withoutPod(ofKind(in, engine.KindSandboxClaim))
	if cost := allocations(loaded(t, none, copies(others)...), claim); cost > most {
		t.Errorf("a request that none of %d rules concerns costs %.0f allocations, want at most %d", others, cost, most)
	}
}

// ofKind is the request for an object of another kind with the same Pod: of its own, or of its template.
func ofKind(in engine.Input, kind string) engine.Input {
	in.Kind = kind
	switch kind {
	case engine.KindSandboxClaim:
		in.Object = map[string]any{"metadata": map[string]any{"name": "task"}, "spec": map[string]any{"warmPoolRef": map[string]any{"name": "pool"}}}
	case engine.KindSandboxWarmPool:
		in.Object = map[string]any{
			"metadata": map[string]any{"name": "pool"},
			"spec":     map[string]any{"replicas": 1, "sandboxTemplateRef": map[string]any{"name": "python"}},
		}
	default:
		return in
	}
	in.PodPath = "template.spec.podTemplate"
	return in
}

// BenchmarkEvaluate tells what a decision costs, also as a multiple of decoding the same object, which takes turns with
// it: a time alone says more about the machine. What counts of each is the least that a turn took, since neighbours only
// add to it.
func BenchmarkEvaluate(b *testing.B) {
	in, none := threeContainers(b), withoutLibrary(b)
	claim := ofKind(in, engine.KindSandboxClaim)
	data, err := json.Marshal(in.Object)
	if err != nil {
		b.Fatal(err)
	}
	unmarshal := func() {
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			b.Fatal(err)
		}
	}
	b.Run(fmt.Sprintf("json.Unmarshal of the same %d bytes", len(data)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			unmarshal()
		}
	})
	decide := func(name string, e *engine.Engine, in engine.Input) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			decoding, deciding := leastTime(math.MaxInt64), leastTime(math.MaxInt64)
			for b.Loop() {
				b.StopTimer()
				decoding.of(unmarshal)
				b.StartTimer()
				deciding.of(func() { e.Evaluate(context.Background(), in) })
			}
			b.ReportMetric(float64(deciding)/float64(decoding), "x-Unmarshal")
		})
	}
	for _, rules := range []int{5, 40, 200} {
		e := loaded(b, none, copies(rules)...)
		decide(fmt.Sprintf("a Sandbox by %d rules", rules), e, in)
		ofClaims := loaded(b, none, ofAnotherKind(copies(rules))...)
		decide(fmt.Sprintf("a claim by %d rules", rules), ofClaims, claim)
	}
	others := loaded(b, none, append(copies(40), ofAnotherKind(others(160))...)...)
	decide("a Sandbox by 40 rules beside 160 of another kind", others, in)
	decide("a claim without a Pod by 200 rules of another kind", loaded(b, none, copies(200)...), withoutPod(claim))
	library := loaded(b, "")
	decide(fmt.Sprintf("a Sandbox by the %d rules of the library", len(library.Catalogue())), library, in)
	decide("a claim by the library", library, claim)
	decide("a pool by the library", library, ofKind(in, engine.KindSandboxWarmPool))
	denied := in
	denied.Pod = requestOf(b, "hostPID: true", "hostNetwork: true", "volumes: [{name: a, hostPath: {path: /}}]").Pod
	decide("a Sandbox that the library denies", library, denied)
}

// leastTime is the least that something took.
type leastTime time.Duration

func (l *leastTime) of(call func()) {
	watch := clock.RealClock{}
	began := watch.Now()
	call()
	*l = min(*l, leastTime(watch.Since(began)))
}

// withoutPod is the request of an object whose template is not there yet: Pod Security has nothing to judge.
func withoutPod(in engine.Input) engine.Input {
	in.Pod, in.PodPath = nil, ""
	return in
}

// others are copies under other names.
func others(n int) []engine.Module {
	return copies(n + 40)[40:]
}

func BenchmarkLoad(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			loaded(b, "")
		}
	})
	b.Run("one rule changed", func(b *testing.B) {
		b.ReportAllocs()
		e := loaded(b, "")
		n := 0
		for b.Loop() {
			n++
			load(b, e, "", ruleFile("a", fmt.Sprintf("deny contains \"%d\" if input.kind == \"x\"\n", n)))
		}
	})
}
