// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// A pass lists Pods only while somebody else's policy opens anything, and Pods ask for one only
// when that selects them, and when they come, go, or get other labels.
func TestPodsAreLookedAtWhenAPolicyOfOthersMayConcernThem(t *testing.T) {
	shut := theirs("shut", nil)
	shut.Spec.Egress = nil
	closes, opens, others := shut, theirs("wide", nil), theirs("web", map[string]string{"app": "web"})
	for _, policy := range []*networkingv1.NetworkPolicy{&closes, &opens, &others} {
		policy.Namespace = "team-a"
	}
	a, b, phase := pod("box", "a"), pod("box", "web"), pod("box", "a")
	phase.Status.Phase = corev1.PodRunning
	bare := pod("box", "a")
	bare.Labels = map[string]string{"app": "a"}
	cases := map[string]struct {
		policy *networkingv1.NetworkPolicy
		// before and after are the Pod; nil for none.
		before, after *corev1.Pod
		// asks says whether the event asks for a pass, lists how often a pass lists Pods.
		asks  bool
		lists int
	}{
		"comes, under ours alone":          {nil, nil, &a, false, 0},
		"comes, and a policy closes more":  {&closes, nil, &a, false, 0},
		"comes, and a policy opens others": {&others, nil, &a, false, 1},
		"comes, and a policy opens it":     {&opens, nil, &a, true, 1},
		"goes":                             {&opens, &a, nil, true, 1},
		"runs":                             {&opens, &a, &phase, false, 1},
		"gets a label of the selector":     {&others, &a, &b, true, 1},
		"loses it":                         {&others, &b, &a, true, 1},
		"is no Sandbox's":                  {&opens, nil, &bare, false, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lists := 0
			build := fake.NewClientBuilder().WithObjects(isolation.Floor("team-a"), isolation.Profile("team-a", "none", &config.Platform{}))
			if tc.policy != nil {
				build.WithObjects(tc.policy.DeepCopy())
			}
			world := build.WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ofPods := list.(*corev1.PodList); ofPods {
					lists++
				}
				return c.List(ctx, list, opts...)
			}}).Build()
			r, err := New(world, world, events.NewFakeRecorder(10), prometheus.NewPedanticRegistry())
			if err != nil {
				t.Fatal(err)
			}
			queue := &asked{}
			happens(t.Context(), r.podEvents(), queue, tc.before, tc.after)
			if (len(queue.requests) > 0) != tc.asks || lists > 0 {
				t.Errorf("it asks for %v after %d lists of Pods, want a pass: %t, and none", queue.requests, lists, tc.asks)
			}
			told(t, r, events.NewFakeRecorder(0))
			if lists != tc.lists {
				t.Errorf("a pass lists Pods %d times, want %d", lists, tc.lists)
			}
		})
	}
}

// asked is a queue that notes what it is asked for.
type asked struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	requests []reconcile.Request
}

func (a *asked) AddAfter(request reconcile.Request, _ time.Duration) {
	a.requests = append(a.requests, request)
}

// happens sends the event of a Pod that was one thing before and is another after.
func happens(ctx context.Context, to handler.EventHandler, queue *asked, before, after *corev1.Pod) {
	in := func(p *corev1.Pod) *corev1.Pod {
		placed := p.DeepCopy()
		placed.Namespace = "team-a"
		return placed
	}
	switch {
	case before == nil:
		to.Create(ctx, event.CreateEvent{Object: in(after)}, queue)
	case after == nil:
		to.Delete(ctx, event.DeleteEvent{Object: in(before)}, queue)
	default:
		to.Update(ctx, event.UpdateEvent{ObjectOld: in(before), ObjectNew: in(after)}, queue)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}
