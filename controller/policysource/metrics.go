// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Metrics tell which policies are in force, and what of them did not load.
type Metrics struct {
	policy   *prometheus.GaugeVec
	failures prometheus.Counter
	broken   prometheus.Gauge
	unknown  prometheus.Gauge
	missing  prometheus.Gauge

	quarantined *prometheus.GaugeVec
	exemptions  *prometheus.GaugeVec
	ready       prometheus.Gauge
}

// States of exemptions in metrics.
const (
	exemptionActive   = "active"
	exemptionExpiring = "expiring"
	exemptionExpired  = "expired"
)

// NewMetrics registers the metrics of a component, config.ComponentWebhook or config.ComponentController: both judge,
// and by the same policies unless something is wrong.
func NewMetrics(registry prometheus.Registerer, component string) (*Metrics, error) {
	m := &Metrics{
		policy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_info", Help: "1 for the digest of the policies in force; replicas that differ show several.",
			ConstLabels: prometheus.Labels{"component": component},
		}, []string{"digest"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agent_sandbox_policy_load_failures_total", Help: "Loads of the policies that failed; the last good ones stayed in force.",
		}),
		broken: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_broken_modules", Help: "Modules that did not load.",
		}),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_unknown_rules", Help: "Entries of the policy configuration about rules that do not exist; they have no effect.",
		}),
		missing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_missing_sources", Help: "Policy ConfigMaps that disappeared and whose last content is still in force.",
		}),
		quarantined: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_quarantined", Help: "1 for each rule that is not run any more because it did not finish in time again and again.",
		}, []string{"rule"}),
		exemptions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_exemptions", Help: "Exemptions by state: active, expiring within a week, expired.",
		}, []string{"state"}),
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agent_sandbox_policy_ready", Help: "1 when the policies are in force as they were asked for: all loaded, none unknown, missing or in quarantine.",
		}),
	}
	var errs []error
	for _, collector := range []prometheus.Collector{
		m.policy, m.failures, m.broken, m.unknown, m.missing, m.quarantined, m.exemptions, m.ready,
	} {
		errs = append(errs, registry.Register(collector))
	}
	return m, errors.Join(errs...)
}

// inForce notes the policies in force.
func (m *Metrics) inForce(digest string) {
	m.policy.Reset()
	m.policy.WithLabelValues(digest).Set(1)
}

// loaded notes what a load came to.
func (m *Metrics) loaded(report engine.LoadReport, missing int) {
	m.broken.Set(float64(len(report.Broken)))
	m.unknown.Set(float64(len(report.Unknown)))
	m.missing.Set(float64(missing))
}
