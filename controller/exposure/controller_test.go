// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// told makes a pass over the namespace and returns the Events of it.
func told(t *testing.T, r *Reconciler, recorder *events.FakeRecorder) []string {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team-a"}}); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for len(recorder.Events) > 0 {
		notes = append(notes, <-recorder.Events)
	}
	return notes
}

// exposed are the values of the metric by policy and direction.
func exposed(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "agent_sandbox_exposed_pods" {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() { // sorted by name: direction, namespace, networkpolicy
				labels = append(labels, label.GetValue())
			}
			values[strings.Join(labels, "/")] = metric.GetGauge().GetValue()
		}
	}
	return values
}

// The metric follows the policies and the Pods; an Event comes once for each thing that
// a policy opens, and again only when it opens something else.
func TestMetricAndEventNameThePolicyThatMakesTheHole(t *testing.T) {
	world := fake.NewClientBuilder().WithObjects(isolation.Floor("team-a"), isolation.Profile("team-a", "none", &config.Platform{})).Build()
	for _, name := range []string{"one", "two"} {
		box := pod(name, "a")
		box.Namespace = "team-a"
		must(t, world.Create(t.Context(), &box))
	}
	registry, recorder := prometheus.NewPedanticRegistry(), events.NewFakeRecorder(10)
	r, err := New(world, world, recorder, registry)
	if err != nil {
		t.Fatal(err)
	}
	wide := theirs("wide", nil)
	wide.Namespace = "team-a"
	steps := []struct {
		what   string
		do     func() error
		metric map[string]float64
		events int
	}{
		{"ours alone", func() error { return nil }, map[string]float64{}, 0},
		{"a policy of somebody else", func() error { return world.Create(t.Context(), &wide) }, map[string]float64{"Egress/team-a/wide": 2}, 1},
		{"nothing new", func() error { return nil }, map[string]float64{"Egress/team-a/wide": 2}, 0},
		{"a Pod less", func() error {
			box := pod("two", "a")
			box.Namespace = "team-a"
			return world.Delete(t.Context(), &box)
		}, map[string]float64{"Egress/team-a/wide": 1}, 0},
		{"the other direction as well", func() error {
			wide.Spec.PolicyTypes = append(wide.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
			wide.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
			return world.Update(t.Context(), &wide)
		}, map[string]float64{"Egress/team-a/wide": 1, "Ingress/team-a/wide": 1}, 1},
		{"the policy gone", func() error { return world.Delete(t.Context(), &wide) }, map[string]float64{}, 0},
	}
	for _, step := range steps {
		must(t, step.do())
		notes := told(t, r, recorder)
		if len(notes) != step.events {
			t.Errorf("%s: the Events are %q, want %d", step.what, notes, step.events)
		}
		for _, note := range notes {
			if !strings.Contains(note, "ReopensSandbox") || !strings.Contains(note, "such as one") {
				t.Errorf("%s: the Event %q names neither its reason nor a Pod", step.what, note)
			}
		}
		if diff := cmp.Diff(step.metric, exposed(t, registry)); diff != "" {
			t.Errorf("%s: the metric (-want +got):\n%s", step.what, diff)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}
