// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// eventsOf lets a claim take a member and the pool make another one.
func eventsOf(t *testing.T, r *Reconciler, queue workqueue.TypedRateLimitingInterface[ctrl.Request], number int) {
	t.Helper()
	ctx, sandboxes, claims := t.Context(), r.sandboxEvents(), r.claimEvents()
	ofPool := []metav1.OwnerReference{*metav1.NewControllerRef(makePool(1), extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxWarmPoolKind))}
	member := makeMember(fmt.Sprintf("m%d", number), func(m *member) { m.sandbox.OwnerReferences = ofPool }).sandbox
	taken := member.DeepCopy()
	taken.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "SandboxClaim", Name: "claim", UID: "claim", Controller: new(true)}}
	ready := member.DeepCopy()
	ready.Status.Conditions = []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionTrue}}
	claim, served := makeClaim(), makeClaim(answered(member.Name, agentsv1beta1.ConditionReady, metav1.ConditionTrue))

	claims.Create(ctx, event.CreateEvent{Object: claim}, queue)
	sandboxes.Update(ctx, event.UpdateEvent{ObjectOld: member, ObjectNew: taken}, queue)
	claims.Update(ctx, event.UpdateEvent{ObjectOld: claim, ObjectNew: served}, queue)
	sandboxes.Create(ctx, event.CreateEvent{Object: member}, queue)
	sandboxes.Update(ctx, event.UpdateEvent{ObjectOld: member, ObjectNew: ready}, queue)
}

// However many claims there are, a pool that has something for them is looked at once in a
// while. One that has nothing is looked at as soon as a claim comes.
func TestManyEventsOfAPoolCostOnePass(t *testing.T) {
	for name, tc := range map[string]struct {
		claimable int64
		atOnce    int
	}{
		"of a pool that has something to hand out": {claimable: 100},
		"of a pool that has nothing":               {atOnce: 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon())
			queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request](),
				workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Clock: clock})
			defer queue.ShutDown()
			r := New(nil, nil, nil, clock, Settings{})
			pool := makePool(100)
			r.memories.of(client.ObjectKeyFromObject(pool), pool.UID, noon()).claimable.Store(tc.claimable)
			for i := range 1000 {
				eventsOf(t, r, queue, i)
			}
			if got := queue.Len(); got != tc.atOnce {
				t.Errorf("%d passes are due at once, want %d", got, tc.atOnce)
			}
			take := func() ctrl.Request {
				request, _ := queue.Get() // it waits until one is due
				queue.Done(request)
				return request
			}
			for range tc.atOnce {
				take()
			}
			// The queue comes to a marker when it has dealt with all that came before.
			toMarker := func() (before []ctrl.Request) {
				marker := ctrl.Request{NamespacedName: client.ObjectKey{Name: "marker"}}
				queue.AddAfter(marker, time.Nanosecond)
				clock.Step(time.Nanosecond)
				for request := take(); request != marker; request = take() {
					before = append(before, request)
				}
				return before
			}
			early := toMarker()
			clock.Step(gatherFor)
			due := take()
			if more := slices.Concat(early, toMarker()); due.NamespacedName != client.ObjectKeyFromObject(pool) || len(more) > 0 {
				t.Errorf("%v is looked at, and %v besides, want the pool once", due, more)
			}
		})
	}
}
