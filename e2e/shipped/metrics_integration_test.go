// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// family is what dashboards and autoscalers rely on.
type family struct {
	Kind   string
	Labels []string
	// Buckets are bounds that a histogram has; it may have more.
	Buckets []float64
}

// startup are the bounds of the API for claims, and creation those for Sandboxes. Ours
// begin at 1 ms, where a warm claim ends.
func startup() []float64 {
	return []float64{1, 100, 250, 500, 750, 1000, 1250, 1500, 2000, 2500, 5000, 10000, 30000, 60000, 120000, 240000}
}

func creation() []float64 {
	return []float64{1, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 240000, 300000, 600000}
}

// The names, kinds, labels and bounds are facts of the API; those at the end are ours.
func TestMetricsAreThoseOfTheAPI(t *testing.T) {
	claim := []string{"launch_type", "sandbox_template"}
	want := map[string]family{
		"agent_sandbox_claim_startup_latency_ms":            {"HISTOGRAM", claim, startup()},
		"agent_sandbox_claim_controller_startup_latency_ms": {"HISTOGRAM", claim, startup()},
		"agent_sandbox_client_claim_startup_latency_ms":     {"HISTOGRAM", claim, startup()},
		"agent_sandbox_creation_latency_ms":                 {"HISTOGRAM", []string{"launch_type", "namespace", "sandbox_template"}, creation()},
		"agent_sandbox_claim_creation_total": {
			"COUNTER", []string{"created_by", "launch_type", "namespace", "pod_condition", "sandbox_template", "warmpool_name"}, nil,
		},
		"agent_sandboxes": {
			"GAUGE", []string{"created_by", "expired", "launch_type", "namespace", "owned_by", "ready_condition", "sandbox_template"}, nil,
		},
		"agent_sandbox_build_info": {
			"GAUGE", []string{"build_date", "compiler", "git_commit", "git_version", "go_version", "platform"}, nil,
		},
		"agent_sandbox_warm_pool_sandboxes":            {"GAUGE", []string{"namespace", "state", "warmpool_name"}, nil},
		"agent_sandbox_claim_failures_total":           {"COUNTER", []string{"reason"}, nil},
		"agent_sandbox_claim_adoption_conflicts_total": {"COUNTER", nil, nil},
		"agent_sandbox_claims_waiting":                 {"GAUGE", nil, nil},
		"agent_sandbox_claim_queue_depth":              {"GAUGE", nil, nil},
	}
	e := newEnvironment(t)
	process := e.launch("measured")
	e.fill(2, process)
	e.claimWithTimes("claim")
	e.served(1, process)
	lost := makeClaim("lost")
	lost.Spec.WarmPoolRef.Name = "nowhere"
	e.Create(lost)
	e.full(2, process)
	var got map[string]*dto.MetricFamily
	e.Eventually("the failure is counted", func() error {
		got = e.scrape(process.Process)
		if got["agent_sandbox_claim_failures_total"] == nil {
			return fmt.Errorf("there are %v", slices.Sorted(maps.Keys(got)))
		}
		return nil
	})
	for name, family := range want {
		if diff := cmp.Diff(family, describe(got[name], family.Buckets)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	e.poolStates(got["agent_sandbox_warm_pool_sandboxes"])
}

// claimWithTimes makes a claim of a client and a webhook that say when they saw it.
func (e *environment) claimWithTimes(name string) {
	e.Helper()
	now := clock.RealClock{}.Now().UTC().Format(time.RFC3339Nano)
	claim := makeClaim(name)
	claim.Labels = map[string]string{keys.CreatedBy: "go-client"}
	claim.Annotations = map[string]string{keys.ClientFirstRequestedAt: now, keys.WebhookFirstObservedAt: now}
	e.Create(claim)
}

func (e *environment) scrape(process *apiserver.Process) map[string]*dto.MetricFamily {
	e.Helper()
	text, err := ask(e.Context(), "http://"+process.Metrics+"/metrics")
	if err != nil {
		e.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		e.Fatal(err)
	}
	return families
}

// describe says what a family is, with those of the wanted bounds that it has.
func describe(got *dto.MetricFamily, bounds []float64) family {
	if got == nil {
		return family{Kind: "absent"}
	}
	described := family{Kind: got.GetType().String()}
	metric := got.GetMetric()[0]
	for _, label := range metric.GetLabel() {
		described.Labels = append(described.Labels, label.GetName())
	}
	slices.Sort(described.Labels)
	for _, bucket := range metric.GetHistogram().GetBucket() {
		if slices.Contains(bounds, bucket.GetUpperBound()) {
			described.Buckets = append(described.Buckets, bucket.GetUpperBound())
		}
	}
	return described
}

// poolStates fails the test unless the gauges say what a full pool of two has.
func (e *environment) poolStates(got *dto.MetricFamily) {
	e.Helper()
	states := map[string]float64{}
	for _, metric := range got.GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["namespace"] == e.Namespace {
			states[labels["state"]] = metric.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"desired": 2, "ready": 2, "deficit": 0, "stale": 0, "claimable": 2}
	if diff := cmp.Diff(want, states); diff != "" {
		e.Errorf("gauges of the pool (-want +got):\n%s", diff)
	}
}
