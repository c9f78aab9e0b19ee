// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/rush"
)

// alarms are calls that are due later, while time goes on when a test says so.
type alarms struct {
	now time.Duration
	due []alarm
}

type alarm struct {
	at   time.Duration
	call func()
}

func (a *alarms) after(wait time.Duration, call func()) {
	a.due = append(a.due, alarm{a.now + wait, call})
}

// run lets time pass until then.
func (a *alarms) run(until time.Duration) {
	for {
		slices.SortStableFunc(a.due, func(x, y alarm) int { return int(x.at - y.at) })
		if len(a.due) == 0 || a.due[0].at > until {
			a.now = until
			return
		}
		next := a.due[0]
		a.now, a.due = next.at, a.due[1:]
		next.call()
	}
}

// shift is a controller whose passes follow one another as in its queue, and whose writes are
// seen by its watches before they are answered.
type shift struct {
	*Reconciler
	alarms

	queue  workqueue.TypedRateLimitingInterface[ctrl.Request]
	passes map[string]int
	// writes are those of claims, in their order.
	writes []string
}

func newShift(t *testing.T, r *Reconciler) *shift {
	t.Helper()
	s := &shift{Reconciler: r, passes: map[string]int{}}
	s.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(s.queue.ShutDown)
	s.settings.Rush = &rush.Rush{AfterFunc: s.after}
	stored, watched := s.client.(client.WithWatch)
	if err := s.waker.Source().Start(t.Context(), s.queue); err != nil || !watched {
		t.Fatal(err, watched)
	}
	s.client = interceptor.NewClient(stored, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, object, options...)
			if sandbox, isSandbox := object.(*agentsv1beta1.Sandbox); isSandbox && err == nil {
				s.sandboxEvents().Create(ctx, event.CreateEvent{Object: sandbox.DeepCopy()}, s.queue)
			}
			return err
		},
		Patch: s.patch,
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			s.writes = append(s.writes, sub)
			s.run(s.now + 5*time.Millisecond) // what is written takes its time
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
	return s
}

func (s *shift) patch(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	sandbox, isSandbox := object.(*agentsv1beta1.Sandbox)
	if !isSandbox {
		s.writes = append(s.writes, "annotations")
		return c.Patch(ctx, object, patch, options...)
	}
	before := &agentsv1beta1.Sandbox{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), before); err != nil {
		return err
	}
	err := c.Patch(ctx, object, patch, options...)
	if err == nil {
		s.sandboxEvents().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: sandbox.DeepCopy()}, s.queue)
	}
	return err
}

// work lets the claims be worked on until nothing is in the queue.
func (s *shift) work(t *testing.T) {
	t.Helper()
	for s.queue.Len() > 0 {
		request, _ := s.queue.Get()
		s.passes[request.Name]++
		if _, err := s.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		s.queue.Done(request)
	}
}

func total(counts map[string]int) (sum int) {
	for _, count := range counts {
		sum += count
	}
	return sum
}

// A claim that gets its Sandbox has one pass that gives it and one that writes its annotations,
// alone and in a burst; and of those of a burst nothing is written before all are Ready.
func TestAClaimThatIsServedHasTwoPasses(t *testing.T) {
	for name, tc := range map[string]struct {
		claims int
		warm   bool
		// writes are those of each claim, of which all have one before the next.
		writes []string
	}{
		"one claim":                    {1, true, []string{"status", "annotations"}},
		"a burst":                      {5, true, []string{"status", "annotations"}},
		"one that starts a new one":    {1, false, []string{"status"}},
		"a burst that starts new ones": {3, false, []string{"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			var members []*agentsv1beta1.Sandbox
			want := map[string]int{}
			for i := range tc.claims {
				if want[fmt.Sprintf("claim-%d", i)] = 2; tc.warm {
					members = append(members, makeMemberOf(t, makePool(), makeTemplate(), fmt.Sprintf("box-%d", i), 0))
				}
			}
			s := newShift(t, makePasses(t, makeClaim("other"), members...))
			for claim := range want {
				made := makeClaim(claim, func(c *extensionsv1beta1.SandboxClaim) { c.UID = types.UID(claim) })
				if err := s.client.Create(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				s.queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(made)})
			}
			s.work(t)
			if diff := cmp.Diff(slices.Repeat([]string{"status"}, tc.claims), s.writes); diff != "" || total(s.passes) != tc.claims {
				t.Errorf("at first there are the passes %v (-want writes of claims +got):\n%s", s.passes, diff)
			}
			for ; len(s.due) > 0; s.work(t) {
				s.run(s.now + time.Millisecond)
			}
			if diff := cmp.Diff(want, s.passes); diff != "" {
				t.Errorf("passes (-want +got):\n%s", diff)
			}
			var writes []string
			for _, write := range tc.writes {
				writes = append(writes, slices.Repeat([]string{write}, tc.claims)...)
			}
			if diff := cmp.Diff(writes, s.writes); diff != "" {
				t.Errorf("writes of claims (-want +got):\n%s", diff)
			}
		})
	}
}

// While other claims are under way for long, a claim that is Ready looks after them once.
func TestAClaimOfALongBurstHasTwoPasses(t *testing.T) {
	claim := makeClaim("claim")
	s := newShift(t, makePasses(t, claim, makeMemberOf(t, makePool(), makeTemplate(), "box", 0)))
	s.settings.Rush.Begin()
	s.queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
	s.work(t)
	s.run(rush.Longest - time.Millisecond)
	if s.work(t); s.passes["claim"] != 1 {
		t.Errorf("there were %d passes while others are under way, want one", s.passes["claim"])
	}
	s.run(time.Minute)
	if s.work(t); s.passes["claim"] != 2 || !slices.Contains(s.writes, "annotations") {
		t.Errorf("there were %d passes that wrote %v, want two and the annotations", s.passes["claim"], s.writes)
	}
}

// A write of which this process knows nothing gives a claim a Sandbox: the claim learns of it.
func TestAClaimLearnsOfASandboxThatAnEarlierLeaderGaveIt(t *testing.T) {
	claim := makeClaim("claim")
	member := makeMemberOf(t, makePool(), makeTemplate(), "box", 0)
	s := newShift(t, makePasses(t, claim, member))
	taken := handOver(member, claim, member.Spec.PodTemplate.ObjectMeta)
	if err := s.client.Patch(t.Context(), taken, metadataPatch(member, taken)); err != nil {
		t.Fatal(err)
	}
	for s.work(t); len(s.due) > 0; s.work(t) {
		s.run(s.now + time.Millisecond)
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	if claim.Status.SandboxStatus.Name != "box" || claim.Annotations[keys.SandboxName] != "box" {
		t.Errorf("the claim has %+v, %v", claim.Status, claim.Annotations)
	}
}
