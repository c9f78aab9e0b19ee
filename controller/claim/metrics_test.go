// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

func TestTroublesAreCountedByTheirReasons(t *testing.T) {
	gaveUp := func(s *scope) { s.bindDeadline = noon() }
	cases := map[string]struct {
		change func(*scope)
		// reason is that of the Ready condition that is written.
		reason string
		want   map[string]float64
	}{
		"what a user must mend":                    {func(*scope) {}, ReasonInvalidMetadata, map[string]float64{"InvalidMetadata": 1}},
		"not again while it stays so":              {func(s *scope) { ready(s.claim, "False", ReasonInvalidMetadata) }, ReasonInvalidMetadata, nil},
		"one that never got a Sandbox and gave up": {gaveUp, ReasonClaimExpired, map[string]float64{"BindTimeout": 1}},
		"not again while that stays so": {
			func(s *scope) { gaveUp(s); ready(s.claim, "False", ReasonClaimExpired) }, ReasonClaimExpired, nil,
		},
		"one whose time was up":                  {func(s *scope) { gaveUp(s); s.owned["box"] = makeSandbox() }, ReasonClaimExpired, nil},
		"one whose own time was up before it":    {func(s *scope) { s.bindDeadline = noon().Add(time.Second) }, ReasonClaimExpired, nil},
		"one that would wait for ever otherwise": {func(*scope) {}, ReasonClaimExpired, nil},
		"one that only waits for its Sandbox":    {func(*scope) {}, ReasonSandboxNotReady, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon()), Settings{})
			registry := prometheus.NewPedanticRegistry()
			if err := r.metrics.register(registry); err != nil {
				t.Fatal(err)
			}
			s := makeScope()
			tc.change(s)
			r.measure(s, extensionsv1beta1.SandboxClaimStatus{Conditions: []metav1.Condition{
				{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: tc.reason},
			}})
			if diff := cmp.Diff(tc.want, troublesIn(t, registry), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

// troublesIn are the counted troubles by their reasons.
func troublesIn(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "agent_sandbox_claim_failures_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			counted[series.GetLabel()[0].GetValue()] = series.GetCounter().GetValue()
		}
	}
	return counted
}
