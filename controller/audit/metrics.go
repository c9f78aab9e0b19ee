// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// metrics are what the audit tells Prometheus.
type metrics struct {
	violations  *prometheus.GaugeVec
	evaluations prometheus.Counter
	seconds     prometheus.Counter
	members     *prometheus.CounterVec
	writes      *prometheus.CounterVec
	collectors  []prometheus.Collector
	// published are the series of each namespace.
	published map[string]map[series]int
}

func newMetrics(objects func() int, lag func() float64) *metrics {
	m := &metrics{
		published: map[string]map[series]int{},
		violations: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_violations",
			Help: "Stored objects about which a rule has something to say today, by rule, namespace, severity and enforcement.",
		}, []string{"rule", "namespace", "severity", "enforcement"}),
		evaluations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agent_sandbox_audit_evaluations_total", Help: "Stored objects that the audit judged.",
		}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agent_sandbox_audit_seconds_total", Help: "Time that the audit worked: to list, judge and report, without pauses.",
		}),
		members: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_claim_verdicts_total",
			Help: "Sandboxes of pools that were judged before a claim got them, by verdict: admitted, refused or unknown.",
		}, []string{"verdict"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_audit_report_writes_total", Help: "Reports that were written and deleted, by operation and outcome.",
		}, []string{"operation", "outcome"}),
	}
	m.collectors = []prometheus.Collector{
		m.violations, m.evaluations, m.seconds, m.members, m.writes,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agent_sandbox_audit_objects", Help: "Stored objects whose judgement is known.",
		}, func() float64 { return float64(objects()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agent_sandbox_audit_age_seconds", Help: "Time since the namespace whose turn is due longest was audited in full; 0 when there is none.",
		}, lag),
	}
	return m
}

func (m *metrics) register(registry prometheus.Registerer) error {
	var errs []error
	for _, collector := range m.collectors {
		errs = append(errs, registry.Register(collector))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("register the metrics of the audit: %w", err)
	}
	return nil
}

// series is what violations are counted by in a namespace.
type series struct {
	rule        string
	severity    engine.Severity
	enforcement engine.Enforcement
}

// violations counts the objects of each series. An object counts once, however often a
// rule finds fault with it.
func violations(entries []*entry) map[series]int {
	counts := map[series]int{}
	for _, e := range entries {
		own := map[series]bool{}
		for _, handle := range e.findings {
			f := handle.Value()
			own[series{f.Rule, f.Severity, f.Enforcement}] = true
		}
		for s := range own {
			counts[s]++
		}
	}
	return counts
}

// publish replaces the series of a namespace. Only one pass at a time does.
func (m *metrics) publish(namespace string, counts map[series]int) {
	for s := range m.published[namespace] {
		if counts[s] == 0 {
			m.violations.DeleteLabelValues(s.rule, namespace, string(s.severity), string(s.enforcement))
		}
	}
	for s, count := range counts {
		m.violations.WithLabelValues(s.rule, namespace, string(s.severity), string(s.enforcement)).Set(float64(count))
	}
	m.published[namespace] = counts
	if len(counts) == 0 {
		delete(m.published, namespace)
	}
}
