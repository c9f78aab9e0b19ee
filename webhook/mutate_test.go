// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
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

// A dry run is judged as any other request, but no metric of decisions counts it, and the
// decision log says of each of its lines what it was.
func TestDryRunsAreNotCounted(t *testing.T) {
	var written bytes.Buffer
	log, err := engine.NewDecisionLog(engine.DecisionLogOptions{Writer: &written, Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	decide, source, _ := world{log: log}.parts(t)
	request := update("tenant", "Sandbox", sandbox(""), sandbox(hostPath))
	for _, path := range []string{PathMutate, PathValidate} {
		registry := prometheus.NewRegistry()
		m, err := NewMetrics(registry, testclock.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)))
		if err != nil {
			t.Fatal(err)
		}
		handler := Handlers(decide, source, m, 100)[path]
		for i, step := range []struct {
			dry   bool
			count float64
		}{{true, 0}, {false, 1}, {true, 1}} {
			request.DryRun = &step.dry
			if response := ask(t, handler, request); response.Allowed != (path == PathMutate) {
				t.Errorf("%s: dry run %t is allowed: %t", path, step.dry, response.Allowed)
			}
			want := map[string]float64{"agent_sandbox_admission_decisions_total": step.count, "agent_sandbox_admission_duration_seconds": step.count}
			if path == PathValidate && step.count > 0 {
				want["agent_sandbox_admission_findings_total"] = 1
			}
			if diff := cmp.Diff(want, counted(t, registry), cmpopts.IgnoreMapEntries(func(_ string, count float64) bool { return count == 0 })); diff != "" {
				t.Errorf("%s: counted after request %d, a dry run %t (-want +got):\n%s", path, i+1, step.dry, diff)
			}
		}
	}
	log.Close()
	var marks []bool
	for data := range bytes.Lines(written.Bytes()) {
		var line struct {
			Input struct {
				DryRun bool `json:"dryRun"`
			} `json:"input"`
		}
		if err := json.Unmarshal(data, &line); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, line.Input.DryRun)
	}
	// Each request has a line for the object as it was before.
	if diff := cmp.Diff([]bool{true, true, false, false, true, true}, marks); diff != "" {
		t.Errorf("lines of dry runs (-want +got):\n%s", diff)
	}
}

// counted are the sums of all metrics over their labels, of histograms how many were observed.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			sums[family.GetName()] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sums
}

// configuration is the platform configuration of the world.
func (w world) configuration() string {
	if w.platform != "" {
		return w.platform
	}
	return platform
}
