// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// timers is a queue that remembers for when passes were asked.
type timers struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	after []time.Duration
}

func (q *timers) Add(ctrl.Request) { q.after = append(q.after, 0) }

func (q *timers) AddAfter(_ ctrl.Request, after time.Duration) { q.after = append(q.after, after) }

// overtaken is a judge that refuses by rules which change meanwhile, or do not.
type overtaken struct {
	verdict.Judge

	change func()
}

func (overtaken) Ready() bool { return true }

func (o overtaken) Of(context.Context, *agentsv1beta1.Sandbox) verdict.Verdict {
	o.change()
	return verdict.Verdict{State: verdict.Refused}
}

// The rules change while a member is judged by the old ones. The claim did not wait yet when
// that was told, and looks again at once.
func TestAClaimThatIsRefusedByRulesOfBeforeLooksAgain(t *testing.T) {
	cases := map[string]struct {
		changes bool
		want    time.Duration
	}{
		"when they change meanwhile": {true, time.Millisecond},
		"not when they stay":         {false, 10 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool, template := makePool(), makeTemplate()
			member := makeMemberOf(t, pool, template, "member", time.Hour)
			a, queue := newArchive(t, makeClaim("claim"), template, pool, member), &timers{}
			a.r.index.SetNode("node", true)
			a.r.index.SetPod(member.UID, candidates.Pod{UID: "pod", Ready: true, Node: "node"})
			a.r.noteSandbox(nil, member)
			a.r.settings.ColdStartAfter = time.Hour
			a.r.settings.Verdicts = overtaken{change: func() {
				if tc.changes {
					a.r.index.Reconsider("")
				}
			}}
			if err := a.r.waker.Source().Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			a.pass()
			if len(queue.after) == 0 || slices.Min(queue.after) != tc.want || a.r.index.TotalWaiting() != 1 {
				t.Errorf("%d claims wait, and look again after %v, want one and %s", a.r.index.TotalWaiting(), queue.after, tc.want)
			}
		})
	}
}

// After a watch broke, one event may tell of an object and of another that has its name by now.
func TestNothingIsKeptOfWhatWasReplacedUnseen(t *testing.T) {
	pool, template := makePool(), makeTemplate()
	a := newArchive(t, makeClaim("claim"), template, pool)
	before := makeMemberOf(t, pool, template, "member", time.Hour)
	after := before.DeepCopy()
	after.UID = "member-2"
	podOf := func(owner *agentsv1beta1.Sandbox) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name, UID: owner.UID + "-pod"}}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, agentsv1beta1.GroupVersion.WithKind(agentsv1beta1.SandboxKind))}
		pod.Spec.NodeName = "node"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return pod
	}
	queue := &timers{}
	a.r.index.SetNode("node", true)
	a.r.podEvents().Create(t.Context(), event.CreateEvent{Object: podOf(before)}, queue)
	a.r.sandboxEvents().Create(t.Context(), event.CreateEvent{Object: before}, queue)
	a.r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: podOf(before), ObjectNew: podOf(after)}, queue)
	a.r.sandboxEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
	size := func() [2]int {
		members, offered := a.r.index.Size(client.ObjectKeyFromObject(pool))
		return [2]int{members, offered}
	}
	if diff := cmp.Diff([2]int{1, 1}, size()); diff != "" {
		t.Errorf("members, and those that are offered (-want +got):\n%s", diff)
	}
	a.r.noteSandbox(nil, before) // were its Pod known still, it would be offered
	if diff := cmp.Diff([2]int{2, 1}, size()); diff != "" {
		t.Errorf("with the first one, of whose Pod nothing is to be known (-want +got):\n%s", diff)
	}
}

// A Sandbox in the place of the claim's may take long to go. It is looked for less and less
// often, and as soon as ever for the next one.
func TestAClaimLooksLessAndLessOftenForThePlaceOfItsSandbox(t *testing.T) {
	s := makeScope()
	look := func() time.Duration {
		s.wake = time.Time{}
		if err := pending(s); err == nil {
			t.Fatal("it says nothing")
		}
		return s.wake.Sub(s.now)
	}
	var got []time.Duration
	for range 7 {
		got = append(got, look())
	}
	const ms = time.Millisecond
	if diff := cmp.Diff([]time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, lastPending, lastPending}, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

// Nobody is called for a claim that is gone, while others wait for the same pool.
func TestAClaimThatAWriteFoundDeletedWaitsForNothing(t *testing.T) {
	pool := types.NamespacedName{Namespace: "team-a", Name: "pool"}
	told := makeClaim("claim")
	ready(told, metav1.ConditionFalse, ReasonWarmPoolNotFound)
	a := newArchive(t, told, makeTemplate(), makePool())
	a.r.settings.ColdStartAfter = time.Hour
	stale := a.claim()
	if err := a.stored.Delete(t.Context(), a.claim()); err != nil {
		t.Fatal(err)
	}
	if err := a.r.pass(t.Context(), stale); err != nil || a.r.index.Waiting(pool) != 0 {
		t.Errorf("the pass ends in %v, and %d claims wait, want none", err, a.r.index.Waiting(pool))
	}
}
