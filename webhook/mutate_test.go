// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
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

// What mutation sets may take an object beyond a limit that it kept as it was submitted: it is
// not refused for that. One that mutation left alone is refused for its size, not for what is unset.
func TestWhatMutationSetsIsWithinTheLimits(t *testing.T) {
	decide := world{platform: strings.Replace(platform, "tiers:\n", "tiers:\n"+demanding, 1), objects: []client.Object{
		namespace("bounded", map[string]string{"platform.agents.x-k8s.io/tier": "demanding"}),
	}}.judge(t)
	filler := func(values int) string {
		full := strings.TrimSuffix(strings.Repeat("1,", 999), ",")
		return `"filler": [` + strings.Repeat("["+full+"],", values/1000) + "[" + strings.TrimSuffix(strings.Repeat("1,", values%1000), ",") + "]]"
	}
	bare := func(filling string) string {
		return `{"metadata": {"name": "box"}, "spec": {"podTemplate": {"spec": {"containers": [` +
			strings.TrimSuffix(strings.Repeat(`{"name": "a", "image": "example.com/a:1"},`, 100), ",") + `]}}, ` + filling + `}}`
	}
	valuesOf := func(object string) int {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(object), &decoded); err != nil {
			t.Fatal(err)
		}
		return extentOf(decoded).values
	}
	most := 19_000 - valuesOf(bare(filler(19_000))) + maxValues
	crowded := func(annotations int) string {
		var list strings.Builder
		for i := range annotations {
			fmt.Fprintf(&list, `, "a%d": ""`, i)
		}
		return strings.Replace(bare(filler(0)), `"name": "box"`, `"name": "box", "annotations": {"b": ""`+list.String()+`}`, 1)
	}
	cases := map[string]struct {
		object string
		beyond bool
	}{
		"as many values as there may be":  {bare(filler(most)), false},
		"one more":                        {bare(filler(most + 1)), true},
		"as many members as there may be": {crowded(maxEntries - 1), false},
		"one member more":                 {crowded(maxEntries), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: creation("bounded", "Sandbox", tc.object)}
			mutated := decide.Mutate(t.Context(), request)
			if (len(mutated.Patches) == 0) != tc.beyond {
				t.Errorf("mutation sets %d things, want none: %t", len(mutated.Patches), tc.beyond)
			}
			request.Object.Raw = patched(t, request.Object.Raw, mutated)
			causes, _ := causesOf(t, decide.Validate(t.Context(), request))
			limits, unset := false, false
			for of := range causes {
				limits = limits || of.rule == ruleLimits
				unset = unset || of.rule == judge.RuleDefaults
			}
			if limits != tc.beyond || unset {
				t.Errorf("refused for its size %t and for what is unset %t, want %t and false: %.500v", limits, unset, tc.beyond, causes)
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
