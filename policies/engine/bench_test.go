// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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

// TestEvaluateAllocations bounds what one decision of the library allocates: unlike its time, that does
// not depend on the machine.
func TestEvaluateAllocations(t *testing.T) {
	const most, mostOfOneRule, mostOfAnotherKind = 5200, 30, 10
	in := threeContainers(t)
	allocations := func(extras ...engine.Module) float64 {
		e := loaded(t, "", extras...)
		return testing.AllocsPerRun(20, func() { e.Evaluate(context.Background(), in) })
	}
	small, large := allocations(copies(3)...), allocations(copies(23)...)
	if large > most {
		t.Errorf("%.0f allocations with %d more rules, want at most %d", large, 23, most)
	}
	if one := (large - small) / 20; one > mostOfOneRule {
		t.Errorf("a rule that visits three containers costs %.1f allocations, want at most %d", one, mostOfOneRule)
	}
	others := copies(23)
	for i := range others {
		others[i].Content = []byte(strings.Replace(string(others[i].Content), "[Sandbox]", "[SandboxClaim]", 1))
	}
	if more := allocations(others...) - allocations(); more > mostOfAnotherKind {
		t.Errorf("23 rules of another kind cost %.0f allocations, want at most %d", more, mostOfAnotherKind)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	in := threeContainers(b)
	data, err := json.Marshal(in.Object)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("json.Unmarshal of the same %d bytes", len(data)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var object map[string]any
			if err := json.Unmarshal(data, &object); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, extras := range []int{0, 23, 183} {
		e := loaded(b, "", copies(extras)...)
		b.Run(fmt.Sprintf("%d rules", len(e.Catalogue())), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := e.Evaluate(context.Background(), in); len(d.Findings) > 0 {
					b.Fatal(show(b, d))
				}
			}
		})
	}
	others := copies(183)
	for i := range others {
		others[i].Content = []byte(strings.Replace(string(others[i].Content), "[Sandbox]", "[SandboxClaim]", 1))
	}
	e := loaded(b, "", others...)
	b.Run(fmt.Sprintf("%d rules, %d of them of another kind", len(e.Catalogue()), len(others)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Evaluate(context.Background(), in)
		}
	})
	e = loaded(b, "")
	claim := in
	claim.Kind, claim.PodPath = engine.KindSandboxClaim, "template.spec.podTemplate"
	b.Run("a claim", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Evaluate(context.Background(), claim)
		}
	})
	denied := in
	denied.Pod = requestOf(b, "hostPID: true", "hostNetwork: true", "volumes: [{name: a, hostPath: {path: /}}]").Pod
	b.Run("a denied one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Evaluate(context.Background(), denied)
		}
	})
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
