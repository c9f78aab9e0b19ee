// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Outcomes of a request in metrics.
const (
	outcomeAllowed = "allowed"
	outcomeDenied  = "denied"
	outcomeError   = "error"
	outcomeBusy    = "busy"
)

// labelOther stands in metrics for every kind and operation that we do not know: the
// caller writes them, and each value would be a series for good.
const labelOther = "other"

var (
	labelledKinds = []string{
		engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxWarmPool, engine.KindSandboxClaim, kindScale, kindConfigMap,
	}
	labelledOperations = []string{
		string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete), string(admissionv1.Connect),
	}
)

// oneOf is the value, or labelOther when it is not known.
func oneOf(known []string, value string) string {
	if slices.Contains(known, value) {
		return value
	}
	return labelOther
}

// Metrics are what the webhook tells Prometheus.
type Metrics struct {
	clock clock.PassiveClock

	decisions *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	findings  *prometheus.CounterVec
	failures  *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer, c clock.PassiveClock) (*Metrics, error) {
	m := &Metrics{
		clock: c,
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_admission_decisions_total", Help: "Admission requests by webhook, kind, operation and outcome, dry runs left out.",
		}, []string{"webhook", "kind", "operation", "outcome"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agent_sandbox_admission_duration_seconds", Help: "Time to decide on an admission request.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"webhook", "kind"}),
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_admission_findings_total", Help: "Findings about admitted and refused objects by rule and enforcement, dry runs left out.",
		}, []string{"rule", "enforcement"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_policy_failures_total",
			Help: "Findings that a rule gave no answer, because it erred, contradicted itself or ran out of time, by rule, dry runs left out.",
		}, []string{"rule"}),
	}
	for _, collector := range []prometheus.Collector{m.decisions, m.latency, m.findings, m.failures} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

type findingsKey struct{}

// countFindings hands the verdict of the handler to the metrics around it.
func countFindings(ctx context.Context, v verdict) {
	if seen, ok := ctx.Value(findingsKey{}).(*verdict); ok {
		*seen = v
	}
}

// observe counts and times the requests of a handler. A dry run is not
// counted.
func (m *Metrics) observe(webhook string, next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		begin := m.clock.Now()
		var v verdict
		response := next.Handle(context.WithValue(ctx, findingsKey{}, &v), req)
		if ptr.Deref(req.DryRun, false) {
			return response
		}
		kind, operation := oneOf(labelledKinds, req.Kind.Kind), oneOf(labelledOperations, string(req.Operation))
		m.latency.WithLabelValues(webhook, kind).Observe(m.clock.Since(begin).Seconds())
		m.decisions.WithLabelValues(webhook, kind, operation, outcome(response)).Inc()
		for _, f := range v.findings {
			m.findings.WithLabelValues(f.Rule, string(f.Enforcement)).Inc()
			if f.Failure {
				m.failures.WithLabelValues(f.Rule).Inc()
			}
		}
		return response
	})
}

func outcome(response admission.Response) string {
	switch {
	case response.Allowed:
		return outcomeAllowed
	case response.Result != nil && response.Result.Code >= 500:
		return outcomeError
	case response.Result != nil && response.Result.Code == http.StatusTooManyRequests:
		return outcomeBusy
	default:
		return outcomeDenied
	}
}
