// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/series"
)

const (
	// troubleBindTimeout is the trouble of a claim that expired because it never got a
	// Sandbox. Its Ready condition says ClaimExpired, as that of one whose time was up.
	troubleBindTimeout = "BindTimeout"

	// unknownTemplate is the template of a Sandbox that names none.
	unknownTemplate = "__unknown__"

	labelNamespace = "namespace"
	labelLaunch    = "launch_type"
	labelTemplate  = "sandbox_template"
	labelPool      = "warmpool_name"
)

// metrics are what the claim controller counts and measures.
type metrics struct {
	fromWebhook, fromController, fromClient *prometheus.HistogramVec

	launches  *prometheus.CounterVec
	failures  *prometheus.CounterVec
	conflicts prometheus.Counter
	waiting   prometheus.GaugeFunc
	depth     prometheus.GaugeFunc

	// templates are the names in the series of latencies, launchedFrom those in launches.
	templates    *series.Names[string]
	launchedFrom *series.Names[origin]
}

// origin is what a Sandbox was launched from.
type origin struct{ template, pool string }

func newMetrics(index *candidates.Index, queued func() int, clk clock.PassiveClock) *metrics {
	m := &metrics{
		fromWebhook: latency("agent_sandbox_claim_startup_latency_ms",
			"Milliseconds from when a webhook first saw a claim until it was Ready."),
		fromController: latency("agent_sandbox_claim_controller_startup_latency_ms",
			"Milliseconds from when the platform first saw a claim until it was Ready."),
		fromClient: latency("agent_sandbox_client_claim_startup_latency_ms",
			"Milliseconds from when the client asked until its claim was Ready."),
		launches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_claim_creation_total", Help: "Claims that got a Sandbox.",
		}, []string{labelNamespace, labelTemplate, labelLaunch, labelPool, "pod_condition", "created_by"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_sandbox_claim_failures_total",
			Help: "Times that a claim came into trouble, by the reason of its Ready condition, or BindTimeout if it never got a Sandbox.",
		}, []string{"reason"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agent_sandbox_claim_adoption_conflicts_total", Help: "Sandboxes of pools that changed while a claim was taking them.",
		}),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agent_sandbox_claims_waiting", Help: "Claims that wait for their pools to refill.",
		}, func() float64 { return float64(index.TotalWaiting()) }),
		depth: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agent_sandbox_claim_queue_depth", Help: "Claims that wait for a worker.",
		}, func() float64 { return float64(queued()) }),
	}
	m.templates = series.New(clk, series.Other, func(_, template string, last bool) {
		if !last {
			return
		}
		for _, latencies := range []*prometheus.HistogramVec{m.fromWebhook, m.fromController, m.fromClient} {
			latencies.DeletePartialMatch(prometheus.Labels{labelTemplate: template})
		}
	})
	m.launchedFrom = series.New(clk, origin{series.Other, series.Other}, func(namespace string, from origin, _ bool) {
		m.launches.DeletePartialMatch(prometheus.Labels{labelNamespace: namespace, labelTemplate: from.template, labelPool: from.pool})
	})
	return m
}

// latency is a histogram whose buckets begin where a warm claim ends.
func latency(name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets: []float64{
			1, 2, 5, 10, 20, 35, 50, 75, 100, 250, 500, 750, 1000, 1250, 1500, 2000, 2500, 5000, 10000, 30000, 60000, 120000, 240000,
		},
	}, []string{labelLaunch, labelTemplate})
}

// register publishes the metrics, in the place of those of an earlier controller of
// the same process.
func (m *metrics) register(to prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.fromWebhook, m.fromController, m.fromClient, m.launches, m.failures, m.conflicts, m.waiting, m.depth} {
		to.Unregister(c)
		if err := to.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the series of a namespace that is gone. There may be a new one for each task.
func (m *metrics) forget(namespace string) {
	m.templates.Leave(namespace)
	m.launchedFrom.Leave(namespace)
}

// forgetTemplate drops the series of a template that is gone.
func (m *metrics) forgetTemplate(template client.Object) {
	m.templates.Forget(template.GetNamespace(), func(name string) bool { return name == template.GetName() })
	m.launchedFrom.Forget(template.GetNamespace(), func(from origin) bool { return from.template == template.GetName() })
}

// forgetPool drops the series of a pool that is gone.
func (m *metrics) forgetPool(pool client.Object) {
	m.launchedFrom.Forget(pool.GetNamespace(), func(from origin) bool { return from.pool == pool.GetName() })
}

// countLaunch counts a claim that got its Sandbox.
func (r *Reconciler) countLaunch(s *scope) {
	condition := "not_ready"
	if meta.IsStatusConditionTrue(s.sandbox.Status.Conditions, agentsv1beta1.ConditionReady) {
		condition = "ready"
	}
	creator := s.sandbox.Labels[keys.CreatedBy]
	if creator == "" {
		creator = keys.CreatedByUnknown
	}
	from := origin{templateLabel(s.sandbox), s.claim.Spec.WarmPoolRef.Name}
	r.metrics.launchedFrom.Use(s.claim.Namespace, from, func(from origin) {
		r.metrics.launches.WithLabelValues(s.claim.Namespace, from.template, s.launched, from.pool, condition, creator).Inc()
	})
}

// measure follows a status that was just written: troubles by reason, and the time
// until the claim was Ready for the first time.
func (r *Reconciler) measure(s *scope, desired extensionsv1beta1.SandboxClaimStatus) {
	ready := meta.FindStatusCondition(desired.Conditions, agentsv1beta1.ConditionReady)
	if trouble := s.trouble(ready.Reason); trouble != "" && ready.Reason != storedReason(s.claim) {
		r.metrics.failures.WithLabelValues(trouble).Inc()
	}
	if !isReady(desired) {
		if wasReady(s.claim, s.record) && r.wantsAnnotations(s) {
			r.waker.Now(s.key()) // by them alone will the next process know that it was
		}
		return
	}
	if !wasReady(s.claim, s.record) {
		s.record.readyAt = r.clock.Now()
		r.measureLatency(s, s.record.readyAt)
	}
	if r.wantsAnnotations(s) {
		r.lookLater(s.key())
	}
}

func (r *Reconciler) measureLatency(s *scope, ready time.Time) {
	launch, template := s.sandbox.Labels[keys.LaunchType], templateLabel(s.sandbox)
	for _, measured := range []struct {
		histogram *prometheus.HistogramVec
		since     time.Time
	}{
		{r.metrics.fromWebhook, timeIn(s.claim, keys.WebhookFirstObservedAt)},
		{r.metrics.fromController, firstObserved(s)},
		{r.metrics.fromClient, timeIn(s.claim, keys.ClientFirstRequestedAt)},
	} {
		if span := ready.Sub(measured.since); !measured.since.IsZero() && span >= 0 {
			r.metrics.templates.Use(s.claim.Namespace, template, func(template string) {
				measured.histogram.WithLabelValues(launch, template).Observe(float64(span) / float64(time.Millisecond))
			})
		}
	}
}

// firstObserved is when the platform first saw a claim.
func firstObserved(s *scope) time.Time {
	if at := timeIn(s.claim, keys.ControllerFirstObservedAt); !at.IsZero() {
		return at
	}
	return s.record.firstSeen
}

func timeIn(claim *extensionsv1beta1.SandboxClaim, annotation string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, claim.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

func templateLabel(sandbox *agentsv1beta1.Sandbox) string {
	if name := relations.TemplateOfSandbox(sandbox); name != "" {
		return name
	}
	return unknownTemplate
}

// trouble is what somebody should look at when the Ready condition has a reason; empty when
// that is none.
func (s *scope) trouble(reason string) string {
	switch reason {
	case ReasonTemplateNotFound, ReasonWarmPoolNotFound, ReasonAdoptionConflict, ReasonInvalidMetadata, ReasonEnvVarsInjectionRejected,
		ReasonVolumeClaimTemplatesError, ReasonSandboxMissing, ReasonReconcilerError, agentsv1beta1.ReasonPodFailed:
		return reason
	case ReasonClaimExpired:
		if s.gaveUp() {
			return troubleBindTimeout
		}
	}
	return ""
}
