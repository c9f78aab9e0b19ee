// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// yard is a Reconciler over stored objects, and what it deletes.
type yard struct {
	*Reconciler

	stored   client.WithWatch
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	// deletions are the options of each.
	deletions []*client.DeleteOptions
}

func newYard(t *testing.T, platform *config.Platform, objects ...client.Object) *yard {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{clock: clocktesting.NewFakeClock(noon()), recorder: events.NewFakeRecorder(99)}
	y.stored = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: makeSandbox().Namespace}}).
		WithIndex(&corev1.Pod{}, indexPodByOwner, podOwner).
		WithIndex(&agentsv1beta1.Sandbox{}, indexSandboxByPod, sandboxPod).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			y.deletions = append(y.deletions, (&client.DeleteOptions{}).ApplyOptions(options))
			return c.Delete(ctx, object, options...)
		},
	})
	y.Reconciler = New(y.stored, y.stored, y.recorder, y.clock, Settings{
		Platform: platform, Current: func() *config.Platform { return platform },
	})
	return y
}

// turn is one pass over a name.
func (y *yard) turn(t *testing.T, name string) {
	t.Helper()
	if _, err := y.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: makeSandbox().Namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func (y *yard) has(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	err := y.stored.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// orphaned is a Pod whose Sandbox was deleted without it.
func orphaned(p *corev1.Pod) {
	p.OwnerReferences, p.ResourceVersion = nil, ""
	p.Labels = map[string]string{keys.Sandbox: "true", keys.SandboxNameHash: keys.NameHash("box")}
}

func TestAPodThatNoSandboxControlsIsEndedAfterAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   func(*corev1.Pod)
		stays bool
	}{
		"whose Sandbox was deleted without it":          {pod: func(*corev1.Pod) {}},
		"that was adopted by a Sandbox of another name": {pod: func(p *corev1.Pod) { p.Name = "taken-over" }},
		"that somebody else controls": {stays: true, pod: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: new(true)}}
		}},
		"that only bears the label of the contract": {stays: true, pod: func(p *corev1.Pod) { delete(p.Labels, keys.Sandbox) }},
		"that bears no hash of a Sandbox":           {stays: true, pod: func(p *corev1.Pod) { delete(p.Labels, keys.SandboxNameHash) }},
	} {
		t.Run(name, func(t *testing.T) {
			pod := makePod("box", orphaned, tc.pod)
			y := newYard(t, apiserver.Platform(), pod)
			if woken := y.sandboxesOfPod(t.Context(), pod); (len(woken) == 0) != tc.stays {
				t.Errorf("it wakes %v", woken)
			}
			y.turn(t, pod.Name)
			y.clock.Step(strayFor - time.Second)
			if y.turn(t, pod.Name); !y.has(t, pod) {
				t.Fatal("it was ended before its time")
			}
			y.clock.Step(time.Second)
			if y.turn(t, pod.Name); y.has(t, pod) != tc.stays {
				t.Errorf("it stays: %t, want %t", !tc.stays, tc.stays)
			}
			if told := len(y.recorder.Events) > 0; told == tc.stays {
				t.Errorf("an Event tells of its end: %t, want %t", told, !tc.stays)
			}
		})
	}
}

func TestAPodThatIsAdoptedInTimeIsNoStrayAnyMore(t *testing.T) {
	pod := makePod("box", orphaned)
	y := newYard(t, apiserver.Platform(), pod)
	y.turn(t, "box")
	adopted := pod.DeepCopy()
	ownedByBox(adopted)
	if err := y.stored.Update(t.Context(), adopted); err != nil {
		t.Fatal(err)
	}
	y.clock.Step(strayFor)
	if y.turn(t, "box"); !y.has(t, pod) {
		t.Error("it was ended")
	}
	if len(y.strays.entries) > 0 {
		t.Errorf("it is remembered: %v", y.strays.entries)
	}
}

func TestAPodWhoseLifeIsOverEndsInBoundedTime(t *testing.T) {
	const year = 365 * 24 * 60 * 60
	asks := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(seconds) }
	}
	ending := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(noon())), new(seconds)
			p.Finalizers = []string{"example.com/hold"}
		}
	}
	for name, tc := range map[string]struct {
		pod     func(*corev1.Pod)
		deleted bool
		// grace is what the deletion asks for; nil leaves it to the Pod.
		grace *int64
	}{
		"that asks for less":                {asks(60), true, nil},
		"that asks for nothing":             {func(*corev1.Pod) {}, true, nil},
		"that asks for a year":              {asks(year), true, new(int64(300))},
		"that is ending, and takes a year":  {ending(year), true, new(int64(300))},
		"that is ending, and takes no more": {ending(300), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := makePod("box", ownedByBox, func(p *corev1.Pod) { p.ResourceVersion = "" }, tc.pod)
			y := newYard(t, apiserver.Platform(), pod)
			if err := y.endPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if got := len(y.deletions) == 1; got != tc.deleted {
				t.Fatalf("it is deleted %d times", len(y.deletions))
			}
			if !tc.deleted {
				return
			}
			got := y.deletions[0]
			if got.GracePeriodSeconds == nil != (tc.grace == nil) || tc.grace != nil && *got.GracePeriodSeconds != *tc.grace {
				t.Errorf("it has %v seconds, want %v", got.GracePeriodSeconds, tc.grace)
			}
			if got.PropagationPolicy == nil || *got.PropagationPolicy != metav1.DeletePropagationBackground {
				t.Errorf("it is deleted by %v, so that a finalizer may say otherwise", got.PropagationPolicy)
			}
		})
	}
}

// What is left of a Sandbox that was deleted has the time that it asks for only where nothing else ends it.
func TestATierWithALongestLifeHastensThePodsOfADeletedSandbox(t *testing.T) {
	for name, tc := range map[string]struct {
		most time.Duration
		want int
	}{
		"in a tier with a longest life": {time.Hour, 1},
		"in a tier without":             {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			platform := apiserver.Platform()
			tier := platform.Tiers["standard"]
			tier.MaxLifetime = metav1.Duration{Duration: tc.most}
			platform.Tiers["standard"] = tier
			y := newYard(t, platform, makePod("box", ownedByBox, func(p *corev1.Pod) {
				p.ResourceVersion, p.Finalizers = "", []string{"example.com/hold"}
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(noon())), new(int64(100000))
			}))
			if y.turn(t, "box"); len(y.deletions) != tc.want {
				t.Errorf("it is hastened %d times, want %d", len(y.deletions), tc.want)
			}
		})
	}
}
