// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
)

func TestMutate(t *testing.T) {
	const open = `{"metadata": {"name": "box"}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "main"}]}}}}`
	cases := map[string]struct {
		request admissionv1.AdmissionRequest
		// paths are those of the patch.
		paths []string
	}{
		"a Sandbox that leaves everything open": {creation("tenant", "Sandbox", open), []string{
			"/spec/podTemplate/spec/automountServiceAccountToken", "/spec/podTemplate/spec/enableServiceLinks",
			"/spec/podTemplate/spec/runtimeClassName", "/spec/podTemplate/spec/securityContext",
			"/spec/podTemplate/spec/containers/0/securityContext", "/metadata/annotations",
		}},
		"a claim":                               {creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}}`), []string{"/metadata/annotations"}},
		"a pool, for which no webhook is asked": {creation("tenant", "SandboxWarmPool", `{"metadata": {"name": "p"}, "spec": {"sandboxTemplateRef": {"name": "t"}}}`), nil},
		"a Sandbox that is hardened":            {creation("tenant", "Sandbox", sandbox("")), []string{"/metadata/annotations"}},
		"a change that leaves the Pod alone":    {update("tenant", "Sandbox", open, strings.Replace(open, `"spec": {`, `"spec": {"service": true, `, 1)), nil},
		// It is refused, for the tier and not for what could have been set.
		"a namespace of a tier that nobody knows": {creation("lost", "Sandbox", open), []string{
			"/spec/podTemplate/spec/automountServiceAccountToken", "/spec/podTemplate/spec/enableServiceLinks", "/spec/podTemplate/spec/securityContext",
			"/spec/podTemplate/spec/containers/0/securityContext", "/metadata/annotations",
		}},
		"a namespace that cannot be read": {creation("nowhere", "Sandbox", open), nil},
		"a deletion":                      {admissionv1.AdmissionRequest{Operation: admissionv1.Delete}, nil},
	}
	handlers := world{}.start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := ask(t, handlers[PathMutate], tc.request)
			var operations []struct{ Op, Path string }
			if response.Patch != nil {
				if err := json.Unmarshal(response.Patch, &operations); err != nil {
					t.Fatal(err)
				}
			}
			var paths []string
			for _, operation := range operations {
				paths = append(paths, operation.Path)
			}
			if diff := cmp.Diff(tc.paths, paths); diff != "" || !response.Allowed {
				t.Errorf("allowed %t, paths (-want +got):\n%s", response.Allowed, diff)
			}
		})
	}
}

func TestDryRunLeavesNoTrace(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, clock)
	if err != nil {
		t.Fatal(err)
	}
	decide := &Judge{Judge: &judge.Judge{Clock: clock}}
	handler := Handlers(decide, &policysource.Source{}, m, 100)[PathMutate]
	request := creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}}`)
	for _, step := range []struct {
		dry   bool
		count float64
	}{{true, 0}, {false, 1}, {true, 1}} {
		request.DryRun = &step.dry
		ask(t, handler, request)
		if got := counted(t, registry, "agent_sandbox_admission_decisions_total"); got != step.count {
			t.Errorf("after a request with dry run %t, %v decisions are counted, want %v", step.dry, got, step.count)
		}
	}
}

// counted is the sum of a metric over its labels.
func counted(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// configuration is the platform configuration of the world.
func (w world) configuration() string {
	if w.platform != "" {
		return w.platform
	}
	return platform
}
