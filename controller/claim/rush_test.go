// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/rush"
)

// makePasses is a Reconciler that serves the claim from a pool with these members.
func makePasses(t *testing.T, claim *extensionsv1beta1.SandboxClaim, members ...*agentsv1beta1.Sandbox) *Reconciler {
	t.Helper()
	return newPasses(t, &glances{reads: map[string]struct{}{}, given: map[client.Object]runtime.Object{}}, claim, members...)
}

// passOver lets the claim have a pass.
func passOver(t *testing.T, r *Reconciler, claim client.Object) {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
		t.Fatal(err)
	}
}

func TestAClaimIsUnderWayUntilSomethingIsSaidOfIt(t *testing.T) {
	cases := map[string]struct {
		members []*agentsv1beta1.Sandbox
		claim   func(*extensionsv1beta1.SandboxClaim)
		want    bool
	}{
		"one that is served":              {members: []*agentsv1beta1.Sandbox{makeMemberOf(t, makePool(), makeTemplate(), "box", 0)}},
		"one that waits for its pool":     {want: true},
		"one that is told of its trouble": {claim: withPodMetadata(map[string]string{"no domain": ""}, nil)},
		"one that waits and was told of it before": {claim: func(c *extensionsv1beta1.SandboxClaim) {
			ready(c, metav1.ConditionFalse, ReasonReconcilerError)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := makeClaim("claim")
			if tc.claim != nil {
				tc.claim(claim)
			}
			r := makePasses(t, claim, tc.members...)
			r.settings.ColdStartAfter = time.Minute
			for range 2 {
				_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}) // trouble is an error
				if got := r.settings.Rush.Busy(); got != tc.want {
					t.Errorf("a claim is under way: %t, want %t", got, tc.want)
				}
			}
			if err := r.client.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if passOver(t, r, claim); r.settings.Rush.Busy() {
				t.Error("a claim is under way that is gone")
			}
		})
	}
}

// In a burst, what is written of a claim that is Ready waits for the others, and not for long,
// whatever asks for a pass meanwhile; it is written at once when nobody asked to be called for it.
func TestAnnotationsGoAfterTheClaimsThatAreUnderWay(t *testing.T) {
	cases := map[string]struct {
		after     time.Duration
		busy      bool
		forgotten bool
		want      bool
	}{
		"no claim is under way, a moment later":   {},
		"no claim is under way, after that time":  {after: lookAfter, want: true},
		"one is, after that time":                 {after: lookAfter, busy: true},
		"one is, after almost a second":           {after: rush.Longest - time.Millisecond, busy: true},
		"one is, after a second":                  {after: rush.Longest, busy: true, want: true},
		"one is, and this process has just begun": {busy: true, forgotten: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := makeClaim("claim")
			r := makePasses(t, claim, makeMemberOf(t, makePool(), makeTemplate(), "box", 0))
			later := &alarms{}
			r.settings.Rush = &rush.Rush{AfterFunc: later.after}
			passOver(t, r, claim)
			if len(later.due) != 1 || later.due[0].at != lookAfter {
				t.Errorf("calls were asked for %+v, want one after %s", later.due, lookAfter)
			}
			if tc.busy {
				r.settings.Rush.Begin()
			}
			if tc.forgotten {
				r.memory.forget(client.ObjectKeyFromObject(claim))
				r.later.Clear()
			}
			later.run(tc.after)
			passOver(t, r, claim)
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if got := claim.Annotations[keys.SandboxName] != ""; got != tc.want {
				t.Errorf("the annotations are written: %t, want %t", got, tc.want)
			}
		})
	}
}

// Once the status says no more that the claim was Ready, its annotations have to.
func TestAClaimThatIsReadyNoMoreIsAnnotatedAtOnce(t *testing.T) {
	claim, box := makeClaim("claim"), makeMemberOf(t, makePool(), makeTemplate(), "box", 0)
	r := makePasses(t, claim, box)
	r.settings.Rush = &rush.Rush{AfterFunc: func(time.Duration, func()) {}}
	r.settings.Rush.Begin()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	if err := r.waker.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	passOver(t, r, claim)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(box), box); err != nil {
		t.Fatal(err)
	}
	withCondition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, agentsv1beta1.ReasonDependenciesNotReady, "", 1)(box)
	if err := r.client.Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	passOver(t, r, claim)
	if queue.Len() != 1 {
		t.Errorf("%d passes were asked for when the claim was Ready no more, want one", queue.Len())
	}
	passOver(t, r, claim)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	if claim.Annotations[keys.ClaimFirstReadyAt] == "" || isReady(claim.Status) {
		t.Errorf("the annotations are %v of a claim that is Ready: %t", claim.Annotations, isReady(claim.Status))
	}
}
