// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/series"
)

const (
	// unknown stands for a label that a Sandbox does not have.
	unknown = "unknown"
	// nobody owns a Sandbox that a user made.
	nobody         = "None"
	labelNamespace = "namespace"
	labelTemplate  = "sandbox_template"
	// scrapePatience bounds how long a scrape waits for the cache.
	scrapePatience = 5 * time.Second
)

// population counts the Sandboxes that there are whenever it is asked. Only the
// controller that leads answers, so that a sum over all replicas counts each once.
type population struct {
	client client.Reader
	leads  <-chan struct{}
	count  *prometheus.Desc
}

func newPopulation(cached client.Reader, leads <-chan struct{}) *population {
	return &population{client: cached, leads: leads, count: prometheus.NewDesc("agent_sandboxes", "Sandboxes that there are.",
		[]string{labelNamespace, "ready_condition", "expired", "launch_type", labelTemplate, "owned_by", "created_by"}, nil)}
}

// Describe implements prometheus.Collector.
func (p *population) Describe(to chan<- *prometheus.Desc) { to <- p.count }

// Collect implements prometheus.Collector.
func (p *population) Collect(to chan<- prometheus.Metric) {
	select {
	case <-p.leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	var sandboxes agentsv1beta1.SandboxList
	if err := p.client.List(ctx, &sandboxes, lookup.Shared); err != nil {
		to <- prometheus.NewInvalidMetric(p.count, err)
		return
	}
	for class, count := range census(sandboxes.Items) {
		to <- prometheus.MustNewConstMetric(p.count, prometheus.GaugeValue, float64(count), class.labels()...)
	}
}

// class is what Sandboxes have in common that are counted together.
type class struct {
	namespace        string
	ready, expired   bool
	launch, template string
	ownedBy, creator string
}

func (c class) labels() []string {
	return []string{c.namespace, strconv.FormatBool(c.ready), strconv.FormatBool(c.expired), c.launch, c.template, c.ownedBy, c.creator}
}

// census counts Sandboxes by their classes.
func census(sandboxes []agentsv1beta1.Sandbox) map[class]int {
	counts := map[class]int{}
	for i := range sandboxes {
		counts[classOf(&sandboxes[i])]++
	}
	return counts
}

func classOf(sandbox *agentsv1beta1.Sandbox) class {
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
	c := class{
		namespace: sandbox.Namespace,
		ready:     meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady),
		expired:   ready != nil && ready.Reason == agentsv1beta1.ReasonSandboxExpired,
		launch:    orUnknown(sandbox.Labels[keys.LaunchType]), template: orUnknown(relations.TemplateOfSandbox(sandbox)),
		ownedBy: nobody, creator: orUnknown(sandbox.Labels[keys.CreatedBy]),
	}
	switch {
	case relations.Claim(sandbox) != nil:
		c.ownedBy = extensionsv1beta1.SandboxClaimKind
	case relations.Pool(sandbox) != nil:
		c.ownedBy = extensionsv1beta1.SandboxWarmPoolKind
	}
	return c
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// starts measures how long Sandboxes take from their creation until they are Ready for
// the first time. Only what this process has seen from the beginning is measured.
type starts struct {
	latency *prometheus.HistogramVec
	// templates are the names in the series of latency.
	templates *series.Names[string]

	mu sync.Mutex
	// seen is when this process first saw a Sandbox that nobody had reported on.
	seen map[types.NamespacedName]sighting
}

type sighting struct {
	uid types.UID
	at  time.Time
}

func newStarts(clk clock.PassiveClock) *starts {
	s := &starts{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{ //nolint:promlinter // The name is a fact of the API.
			Name: "agent_sandbox_creation_latency_ms", Help: "Milliseconds from the creation of a Sandbox until it was Ready for the first time.",
			Buckets: []float64{
				1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 240000, 300000, 600000,
			},
		}, []string{labelNamespace, "launch_type", labelTemplate}),
		seen: map[types.NamespacedName]sighting{},
	}
	s.templates = series.New(clk, series.Other, func(namespace, template string, _ bool) {
		s.latency.DeletePartialMatch(prometheus.Labels{labelNamespace: namespace, labelTemplate: template})
	})
	return s
}

// begin notes a Sandbox that has no status yet.
func (s *starts) begin(sandbox *agentsv1beta1.Sandbox, now time.Time) {
	if len(sandbox.Status.Conditions) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(sandbox)
	if s.seen[key].uid != sandbox.UID {
		s.seen[key] = sighting{uid: sandbox.UID, at: now}
	}
}

// ready measures a Sandbox whose status was just written, if that says for the first
// time that it is Ready.
func (s *starts) ready(sandbox *agentsv1beta1.Sandbox, now time.Time) {
	if !meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(sandbox)
	first, known := s.seen[key]
	delete(s.seen, key)
	if !known || first.uid != sandbox.UID {
		return
	}
	span := now.Sub(born(sandbox.CreationTimestamp.Time, first.at))
	s.templates.Use(sandbox.Namespace, orUnknown(relations.TemplateOfSandbox(sandbox)), func(template string) {
		s.latency.WithLabelValues(sandbox.Namespace, orUnknown(sandbox.Labels[keys.LaunchType]), template).
			Observe(float64(span) / float64(time.Millisecond))
	})
}

// forget drops a Sandbox that is gone.
func (s *starts) forget(sandbox types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, sandbox)
}

// leave drops the series of a namespace that is gone. There may be a new one for each task.
func (s *starts) leave(namespace string) {
	s.templates.Leave(namespace)
}

// born is when a Sandbox was created. The time in its metadata knows no fractions of a
// second; within that second, when it was first seen says more.
func born(created, seen time.Time) time.Time {
	if span := seen.Sub(created); span >= 0 && span < time.Second {
		return seen
	}
	return created
}
