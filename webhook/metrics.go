// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Outcomes of a request in metrics.
const (
	outcomeAllowed = "allowed"
	outcomeDenied  = "denied"
	outcomeError   = "error"
	outcomeBusy    = "busy"
)

// Metrics are what the webhook tells Prometheus.
type Metrics struct {
	clock clock.PassiveClock

	decisions *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	findings  *prometheus.CounterVec
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
	}
	for _, collector := range []prometheus.Collector{m.decisions, m.latency, m.findings} {
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

// observe counts and times the requests of a handler. A dry run leaves no trace.
func (m *Metrics) observe(webhook string, next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		begin := m.clock.Now()
		var v verdict
		response := next.Handle(context.WithValue(ctx, findingsKey{}, &v), req)
		if ptr.Deref(req.DryRun, false) {
			return response
		}
		m.latency.WithLabelValues(webhook, req.Kind.Kind).Observe(m.clock.Since(begin).Seconds())
		m.decisions.WithLabelValues(webhook, req.Kind.Kind, string(req.Operation), outcome(response)).Inc()
		for _, f := range v.findings {
			m.findings.WithLabelValues(f.Rule, string(f.Enforcement)).Inc()
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
