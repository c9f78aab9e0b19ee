// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// asked is a queue that remembers for when passes were asked.
type asked struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	after []time.Duration
}

func (a *asked) AddAfter(_ ctrl.Request, after time.Duration) { a.after = append(a.after, after) }

// newCounting is a controller of what is stored, and how many lists it reads.
func newCounting(t *testing.T) (r *Reconciler, clock *testclock.FakePassiveClock, lists *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(agentsv1beta1.AddToScheme(scheme), extensionsv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	stored := fake.NewClientBuilder().WithScheme(scheme)
	indexes := append(relations.OfExtensions(),
		relations.Index{Name: indexSandboxByTemplate, Object: &agentsv1beta1.Sandbox{}, Value: relations.TemplateOfSandbox})
	for _, index := range indexes {
		stored.WithIndex(index.Object, index.Name, func(o client.Object) []string { return []string{index.Value(o)} })
	}
	clock, lists = testclock.NewFakePassiveClock(noon()), new(int)
	cached := interceptor.NewClient(stored.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			*lists++
			return c.List(ctx, into, options...)
		},
	})
	return New(cached, cached, nil, clock, Settings{}), clock, lists
}

// While Sandboxes come and go, their number is a matter of seconds. It is never left as it was.
func TestUsersAreCountedEveryFewSecondsAtMost(t *testing.T) {
	r, clock, lists := newCounting(t)
	queue, template := &asked{}, makeScope().template
	if err := r.waker.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	var got []string
	for pass, after := range []time.Duration{0, time.Second, 2 * time.Second, countEvery, countEvery + time.Second} {
		box := &agentsv1beta1.Sandbox{}
		box.Namespace, box.Name, box.Annotations = "team-a", fmt.Sprintf("box-%d", pass), map[string]string{keys.SandboxTemplateRef: "python"}
		if err := r.client.Create(t.Context(), box); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(noon().Add(after))
		queue.after, *lists = nil, 0
		s := makeScope(func(s *scope) { s.key, s.template, s.now = client.ObjectKeyFromObject(template), template, clock.Now() })
		if err := r.gatherUsers(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		template.Status = desiredStatus(s)
		got = append(got, fmt.Sprintf("%d by %d lists, again after %v", s.sandboxes, *lists, queue.after))
	}
	want := []string{
		"1 by 2 lists, again after []", "1 by 0 lists, again after [4s]", "1 by 0 lists, again after [3s]",
		"4 by 2 lists, again after []", "4 by 0 lists, again after [4s]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Sandboxes that the passes say there are (-want +got):\n%s", diff)
	}
}

// A template that is another one, or that goes, has no numbers of before.
func TestATemplateThatIsNewOrGoesIsCountedAtOnce(t *testing.T) {
	for name, edit := range map[string]func(*scope){
		"one that has no status": func(s *scope) { s.template.Status = extensionsv1beta1.SandboxTemplateStatus{} },
		"one that has gone":      func(s *scope) { s.template = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r, _, lists := newCounting(t)
			s := makeScope(func(s *scope) {
				s.key, s.template.Status.ObservedGeneration = client.ObjectKeyFromObject(s.template), 4
			})
			r.counted.Store(s.key, noon())
			edit(s)
			if err := r.gatherUsers(t.Context(), s); err != nil || *lists == 0 || s.sandboxes != 0 {
				t.Errorf("%d lists were read, %v, and %d Sandboxes found, want none", *lists, err, s.sandboxes)
			}
		})
	}
}
