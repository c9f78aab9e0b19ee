// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// answering is an apiserver that answers every write alike, and remembers what was asked.
type answering struct {
	client.Client

	answer  error
	mu      sync.Mutex
	deleted []string
	created []string
}

func (a *answering) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deleted = append(a.deleted, o.GetName())
	return a.answer
}

func (a *answering) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.created = append(a.created, o.GetName())
	return a.answer
}

// creates are the names that were to be made since the last time.
func (a *answering) creates() []string {
	asked := slices.Sorted(slices.Values(a.created))
	a.created = nil
	return asked
}

// deletes are the names that were asked for since the last time.
func (a *answering) deletes() []string {
	asked := slices.Sorted(slices.Values(a.deleted))
	a.deleted = nil
	return asked
}

var errNoAnswer = context.DeadlineExceeded

func forbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "m", errors.New(why))
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "sandboxes"}, "m", errors.New("changed"))
}

// stage is a pool that goes through passes before an apiserver, from a whole grace after its
// controller met it on.
type stage struct {
	apiserver  answering
	reconciler *Reconciler
	memory     *memory
	clock      *clocktesting.FakePassiveClock
}

func newStage(settings Settings) *stage {
	st := &stage{memory: newMemory("pool-uid", noon().Add(-grace)), clock: clocktesting.NewFakePassiveClock(noon())}
	settings.ReadinessGrace = grace
	if settings.Refill.MaxBatch == 0 {
		settings.Refill.MaxBatch = 300
	}
	st.reconciler = &Reconciler{client: &st.apiserver, live: &st.apiserver, clock: st.clock, settings: settings, suffix: randomSuffix}
	return st
}

// act is a pass that long after noon. What was deleted is leaving.
func (st *stage) act(t *testing.T, after time.Duration, edits ...func(*scope)) *scope {
	t.Helper()
	st.clock.SetTime(noon().Add(after))
	s := makeScope(func(s *scope) {
		s.now, s.memory, s.model, s.unseen = st.clock.Now(), st.memory, &agentsv1beta1.Sandbox{}, map[string]sent{}
	})
	for _, change := range edits {
		change(s)
	}
	for i := range s.members {
		s.members[i].leaving = st.memory.removing.Has(s.members[i].sandbox.UID)
	}
	st.reconciler.act(t.Context(), s)
	return s
}

// having is a pool that wants so many members and has these.
func having(desired int32, strategy extensionsv1beta1.UpdateStrategyType, members ...member) func(*scope) {
	return func(s *scope) { s.pool, s.members = makePool(desired, byStrategy(strategy)), slices.Clone(members) }
}

// A delete whose answer was lost may have been carried out. The next pass repeats it and
// takes no other member, in whatever order the cache lists them.
func TestADeleteWhoseAnswerWasLostIsRepeated(t *testing.T) {
	const recreate, rolling = extensionsv1beta1.UpdateStrategyRecreate, extensionsv1beta1.UpdateStrategyRollingUpdate
	cases := map[string]struct {
		desired  int32
		strategy extensionsv1beta1.UpdateStrategyType
		members  []member
	}{
		"of what is too much":                    {3, recreate, many(4)},
		"of one that is overdue":                 {4, recreate, many(4, failedFor(time.Hour))},
		"of one that rules refuse":               {4, recreate, many(4, refused)},
		"of one that an update replaces":         {3, rolling, append(many(4, stale), makeMember("fresh"))},
		"of one that rules refuse, in an update": {3, rolling, append(many(4, refused), makeMember("fresh"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st := newStage(Settings{})
			st.apiserver.answer = errNoAnswer
			var passes [2][]string
			for pass := range passes {
				st.act(t, time.Duration(pass)*time.Second, having(tc.desired, tc.strategy, tc.members...))
				passes[pass] = st.apiserver.deletes()
				slices.Reverse(tc.members)
			}
			if diff := cmp.Diff(passes[0], passes[1]); diff != "" || len(passes[0]) == 0 {
				t.Errorf("%d were deleted; and in the second pass (-first +second):\n%s", len(passes[0]), diff)
			}
		})
	}
}

// However much there is to delete, a pass ends soon, so that the pools of others have their
// turn. The next one follows at once, unless this one achieved nothing.
func TestAPassDeletesABatchAtMost(t *testing.T) {
	st := newStage(Settings{Refill: Refill{MaxBatch: 4}})
	replaced := having(10, extensionsv1beta1.UpdateStrategyRecreate, many(10, stale)...)
	for pass, want := range []struct {
		answer  error
		deletes int
		atOnce  bool
	}{{nil, 4, true}, {conflict(), 4, false}, {forbidden("no"), 4, false}, {nil, 4, true}, {nil, 2, false}, {nil, 0, false}} {
		st.apiserver.answer = want.answer
		s := st.act(t, time.Duration(pass)*time.Minute, replaced)
		if deletes, atOnce := len(st.apiserver.deletes()), s.wake.Equal(s.now); deletes != want.deletes || atOnce != want.atOnce {
			t.Errorf("pass %d deleted %d, and another at once is due: %t; want %d, %t", pass, deletes, atOnce, want.deletes, want.atOnce)
		}
	}
}

// Of members that were Ready one goes in a grace here. It counts from when one may have been
// deleted last, and what certainly was not does not count.
func TestOnlyWhatMayHaveBeenDeletedTakesFromTheBudget(t *testing.T) {
	type step struct {
		after  time.Duration
		answer error
		want   []string
		// taken is how many have gone to claims by then.
		taken int
	}
	first, second := []string{"m00"}, []string{"m01"}
	cases := map[string][]step{
		"one that was deleted": {
			{0, nil, first, 0}, {time.Second, nil, nil, 0}, {grace, nil, second, 0},
		},
		"one that had changed meanwhile": {
			{0, conflict(), first, 0}, {time.Second, nil, first, 0}, {grace, nil, nil, 0}, {grace + time.Second, nil, second, 0},
		},
		"one that a claim took meanwhile": {
			{0, conflict(), first, 0}, {time.Second, nil, second, 1},
		},
		"one of which the apiserver says that it stays": {
			{0, forbidden("no"), first, 0}, {time.Second, nil, first, 0}, {grace, nil, nil, 0}, {grace + time.Second, nil, second, 0},
		},
		"one of which nobody knows": {
			{0, errNoAnswer, first, 0}, {time.Second, errNoAnswer, first, 0}, {2 * time.Second, nil, first, 0}, {grace + time.Second, nil, nil, 0},
			{grace + 2*time.Second, nil, second, 0},
		},
		"one of which nobody knows and that is gone": {
			{0, errNoAnswer, first, 0}, {time.Second, nil, nil, 1}, {grace, nil, second, 1},
		},
		"one of which nobody knows and that had changed meanwhile": {
			{0, errNoAnswer, first, 0}, {time.Second, conflict(), first, 0}, {2 * time.Second, conflict(), first, 0}, {grace, nil, first, 0}, {grace + time.Second, nil, nil, 0},
		},
	}
	for name, steps := range cases {
		for why, spoil := range map[string]edit{"overdue": failedFor(time.Hour), "refused": refused} {
			t.Run(name+", "+why, func(t *testing.T) {
				st := newStage(Settings{})
				for i, step := range steps {
					st.apiserver.answer = step.answer
					st.act(t, step.after, having(4, extensionsv1beta1.UpdateStrategyOnReplenish, many(4, spoil)[step.taken:]...))
					if diff := cmp.Diff(step.want, st.apiserver.deletes(), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("step %d: deleted (-want +got):\n%s", i, diff)
					}
				}
			})
		}
	}
}

// A pool that lets its claims go first misses the members all the same: the delay of its
// refill goes on meanwhile, and is none of a pool that never was full.
func TestTheDelayOfARefillGoesOnWhileClaimsGoFirst(t *testing.T) {
	const delay = 10 * time.Second
	waiting := func(s *scope) { s.claims = demand{bound: 1} }
	type step struct {
		after   time.Duration
		members int
		edit    func(*scope)
		made    int
	}
	none := func(*scope) {}
	cases := map[string][]step{
		"of a pool that was full": {{0, 2, none, 0}, {time.Second, 1, waiting, 0}, {delay, 1, none, 0}, {time.Second + delay, 1, none, 1}},
		"of a new one":            {{0, 0, waiting, 0}, {time.Second, 0, waiting, 2}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			st := newStage(Settings{Refill: Refill{MaxBatch: 10, Delay: delay}, Yield: Yield{ToBindings: time.Second}})
			for i, step := range steps {
				st.act(t, step.after, having(2, extensionsv1beta1.UpdateStrategyOnReplenish, many(step.members)...), step.edit)
				if made := len(st.apiserver.creates()); made != step.made {
					t.Fatalf("step %d: %d were made, want %d", i, made, step.made)
				}
			}
		})
	}
}

// What was refused stays so while claims go first: the pool says it on, and waits longer after
// the next refusal.
func TestARefusalIsNotForgottenWhileClaimsGoFirst(t *testing.T) {
	st := newStage(Settings{Refill: Refill{MaxBatch: 10}, Yield: Yield{ToBindings: time.Second}})
	st.apiserver.answer = forbidden("exceeded quota: q")
	empty := having(2, extensionsv1beta1.UpdateStrategyOnReplenish)
	st.act(t, 0, empty)
	yielding := st.act(t, 2*time.Second, empty, func(s *scope) { s.claims = demand{bound: 1} })
	if yielding.plan.withheld != 2 || yielding.obstructed(heldQuota) == "" {
		t.Errorf("the pool withholds %d and says %q of the quota", yielding.plan.withheld, yielding.obstructed(heldQuota))
	}
	if st.act(t, 3*time.Second, empty); st.memory.refusal.wait != 2*firstRefusalRetry {
		t.Errorf("after the second refusal it waits %s, want %s", st.memory.refusal.wait, 2*firstRefusalRetry)
	}
}

// What was refused is nothing that the pool would make any more once its template is gone, or may
// not be used: the conditions speak of it no longer.
func TestARefusalGoesWithTheTemplate(t *testing.T) {
	st := newStage(Settings{})
	st.apiserver.answer = forbidden("exceeded quota: q")
	empty := having(2, extensionsv1beta1.UpdateStrategyOnReplenish)
	if s := st.act(t, 0, empty); s.obstructed(heldQuota) == "" {
		t.Fatal("the refusal is not told: the test proves nothing")
	}
	if s := st.act(t, time.Second, empty, func(s *scope) { s.template, s.model = nil, nil }); s.obstructed(heldQuota) != "" {
		t.Errorf("without a template the pool says %q of the quota", s.obstructed(heldQuota))
	}
}

// A refusal whose time is over is no reason for a pass at once while there is another one to
// make nothing.
func TestAPassIsNeverDueInThePast(t *testing.T) {
	st := newStage(Settings{Refill: Refill{MaxBatch: 10, PerSecond: 0.1}})
	empty := having(2, extensionsv1beta1.UpdateStrategyOnReplenish)
	st.act(t, 0, empty) // makes what the rate allows
	st.memory.refusal.note(heldQuota, "exceeded quota: q", makeScope().subject(), noon())
	if s := st.act(t, 2*time.Second, empty); !s.wake.After(s.now) {
		t.Errorf("the next pass is due at %s, now is %s", s.wake, s.now)
	}
}

// timers is a queue that remembers for when passes were asked.
type timers struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	after []time.Duration
}

func (q *timers) AddAfter(_ ctrl.Request, after time.Duration) { q.after = append(q.after, after) }

// What fails is tried again later each time. What is due at a certain time does not wait for
// that.
func TestAPassThatFailsStillComesInTimeForWhatIsDue(t *testing.T) {
	queue := &timers{}
	r := &Reconciler{gauges: newGauges(nil)}
	if err := r.waker.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	s := makeScope(func(s *scope) {
		s.template = nil // of which nothing is said for a moment, so that nothing is written
		s.wakeAt(noon().Add(time.Second))
		s.failed(errors.New("the member cannot be deleted"))
	})
	if err := r.conclude(t.Context(), s); err == nil {
		t.Error("conclude() = nil: what failed is not tried again")
	}
	if diff := cmp.Diff([]time.Duration{time.Second}, queue.after); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
}
