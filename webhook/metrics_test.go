// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Whoever reaches the port writes what kinds and operations he likes; a series is made
// for those that we know, and one for all others.
func TestCallersMakeNoSeriesOfTheirOwn(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, testclock.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	handler := m.observe("validate", admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	kinds := []string{"Sandbox", "SandboxTemplate", "SandboxWarmPool", "SandboxClaim", "Scale", "ConfigMap"}
	want := map[string]bool{"agent_sandbox_admission_decisions_total other/other": true, "agent_sandbox_admission_duration_seconds other": true}
	ask := func(kind, operation string) {
		request := creation("tenant", kind, "{}")
		request.Operation = admissionv1.Operation(operation)
		handler.Handle(t.Context(), admission.Request{AdmissionRequest: request})
	}
	for _, kind := range kinds {
		for _, operation := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
			ask(kind, operation)
			want["agent_sandbox_admission_decisions_total "+kind+"/"+operation] = true
		}
		want["agent_sandbox_admission_duration_seconds "+kind] = true
	}
	for i := range 100 {
		ask(fmt.Sprintf("Kind%d", i), fmt.Sprintf("OPERATION%d", i))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() { // sorted by name
				if label.GetName() == "kind" || label.GetName() == "operation" {
					labels = append(labels, label.GetValue())
				}
			}
			got[family.GetName()+" "+strings.Join(labels, "/")] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series by kind and operation (-want +got):\n%s", diff)
	}
}

// A rule that gives no answer is told apart from one that found something.
func TestRulesThatGiveNoAnswerAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, testclock.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	handler := m.observe("validate", admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
		countFindings(ctx, verdict{findings: []engine.Finding{
			{Rule: "erring", Enforcement: engine.Deny, Failure: true}, {Rule: "finding", Enforcement: engine.Deny},
		}})
		return admission.Denied("")
	}))
	handler.Handle(t.Context(), admission.Request{AdmissionRequest: creation("tenant", "Sandbox", "{}")})
	want := map[string]float64{
		"agent_sandbox_admission_decisions_total": 1, "agent_sandbox_admission_duration_seconds": 1,
		"agent_sandbox_admission_findings_total": 2, "agent_sandbox_policy_failures_total": 1,
	}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}
