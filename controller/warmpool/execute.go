// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

const (
	// maxBase and suffixLength make names of at most 63 characters, which every object
	// that bears them may have.
	maxBase      = 58
	suffixLength = 5
	// inFlight is how many requests a pass has on their way at once.
	inFlight = 32
)

func randomSuffix() string { return rand.String(suffixLength) }

// newName is the name of a new member.
func (r *Reconciler) newName(s *scope) string {
	base := s.pool.Name + "-"
	return base[:min(len(base), maxBase)] + r.suffix()
}

// act carries out what is decided.
func (r *Reconciler) act(ctx context.Context, s *scope) {
	r.adoptOrphans(ctx, s)
	wereReady := 0
	for i := range s.members {
		if s.members[i].wasReady && !s.members[i].leaving {
			wereReady++
		}
	}
	budget, more := s.memory.budget(s.now, r.settings.ReadinessGrace, wereReady)
	until := s.memory.yielding.until(r.settings.Yield, s.claims, s.now)
	s.plan = decide(situation{
		now: s.now, desired: s.desired(), strategy: s.strategy(), members: s.members, unseen: len(s.unseen),
		known: s.model != nil, grace: r.settings.ReadinessGrace, budget: budget, paid: s.memory.spent, cramped: s.obstructed(heldQuota) != "", denied: s.obstructed(heldDenied) != "",
		claims: s.claims, yields: s.now.Before(until),
	})
	s.wakeAt(s.plan.recheck)
	switch {
	case s.plan.withheld > 0:
		s.wakeAt(until)
	case s.plan.missing() == 0:
		s.memory.yielding.satisfied()
	}
	if budget == 0 {
		s.wakeAt(more)
	}
	r.removeAll(ctx, s)
	r.createAll(ctx, s)
}

// removeAll deletes what the plan removes, in the version that was seen, and leaves to the
// next pass what is more than a batch: other pools have their turn before. What costs takes
// from the budget unless it is certain that nothing was deleted.
func (r *Reconciler) removeAll(ctx context.Context, s *scope) {
	count := min(len(s.plan.remove), r.settings.Refill.MaxBatch)
	var mu sync.Mutex
	inParallel(count, func(i int) {
		sandbox := s.plan.remove[i].sandbox
		err := r.client.Delete(ctx, &agentsv1beta1.Sandbox{ObjectMeta: *sandbox.ObjectMeta.DeepCopy()},
			client.Preconditions{UID: &sandbox.UID, ResourceVersion: &sandbox.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground)) // whatever a finalizer on it says of its Pod
		mu.Lock()
		defer mu.Unlock()
		gone := err == nil || apierrors.IsNotFound(err)
		if s.plan.costs.Has(sandbox.UID) && (gone || !patch.Settled(err)) {
			s.memory.spent[sandbox.UID] = s.now
		}
		switch {
		case gone:
			s.memory.removing.Insert(sandbox.UID)
			s.removed[sandbox.Name] = true
		case apierrors.IsConflict(err):
			s.wakeAt(s.now.Add(firstRetry)) // a claim took it, or its status changed
		default:
			s.failed(fmt.Errorf("delete member %q: %w", sandbox.Name, err))
		}
	})
	if count < len(s.plan.remove) && len(s.removed) > 0 {
		s.wakeAt(s.now)
	}
}

// createAll makes what is missing: first what nobody knows the fate of, then new ones,
// as many as limits and refusals allow.
func (r *Reconciler) createAll(ctx context.Context, s *scope) {
	if s.model == nil {
		s.memory.refusal = refusal{} // it speaks of what is made no more
		return
	}
	if s.memory.refusal.holds(s.subject(), s.now) {
		s.wakeAt(s.memory.refusal.retryAt)
		return
	}
	doubtful := s.doubtful()
	count, again := s.memory.refill.allow(r.settings.Refill, s.plan, s.now)
	s.wakeAt(again)
	names := doubtful
	for range count {
		names = append(names, r.newName(s))
	}
	made := sets.New(r.inGrowingBatches(ctx, s, names)...)
	s.memory.refill.spend(made.Delete(doubtful...).Len())
	if s.memory.refusal.holds(s.subject(), s.now) {
		s.wakeAt(s.memory.refusal.retryAt)
	}
}

// doubtful are the names of creates to be repeated: those whose outcome nobody knows, as
// far as the pool has room for them.
func (s *scope) doubtful() []string {
	var names []string
	for name, entry := range s.unseen {
		if entry.doubtful {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	room := s.plan.most - len(s.members) - (len(s.unseen) - len(names))
	return names[:min(len(names), max(0, room))]
}

// inGrowingBatches makes one member, then two, then four, and stops after a batch in
// which one failed: what fails for one will mostly fail for all. It returns those that were made.
func (r *Reconciler) inGrowingBatches(ctx context.Context, s *scope, names []string) (made []string) {
	for size := 1; len(names) > 0; size *= 2 {
		batch := names[:min(size, len(names))]
		names = names[len(batch):]
		errs := make([]error, len(batch))
		inParallel(len(batch), func(i int) { errs[i] = r.create(ctx, s, batch[i]) })
		for i, err := range errs {
			switch {
			case err == nil:
				made = append(made, batch[i])
			case errors.Is(err, errNameTaken):
				s.wakeAt(s.now.Add(firstRetry)) // a new name is tried once this one is not in doubt
				errs[i] = nil
			}
		}
		if err := errors.Join(errs...); err != nil {
			r.refused(s, errs)
			return made
		}
	}
	if len(made) > 0 || s.plan.missing() == 0 {
		s.memory.refusal = refusal{}
	}
	return made
}

// errNameTaken says that a create found somebody else's Sandbox of the name.
var errNameTaken = errors.New("the name is taken")

// create makes one member. It counts from before the request is sent until the cache
// shows it, or until it is certain that there is none. Several run at once.
func (r *Reconciler) create(ctx context.Context, s *scope, name string) error {
	sandbox := s.model.DeepCopy()
	blueprint.SetName(sandbox, name)
	s.memory.unseen.send(name, s.now)
	err := r.client.Create(ctx, sandbox, fieldOwner)
	switch {
	case err == nil:
		s.memory.unseen.made(name, sandbox.UID, s.now)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.meetExisting(ctx, s, name)
	case patch.Settled(err):
		s.memory.unseen.failed(name, true, s.now)
	default:
		s.memory.unseen.lost(name, r.clock.Now())
	}
	return err
}

// meetExisting looks at what has the name: our own, from a request whose answer was
// lost, or somebody else's.
func (r *Reconciler) meetExisting(ctx context.Context, s *scope, name string) error {
	var found agentsv1beta1.Sandbox
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.pool.Namespace, Name: name}, &found)
	switch {
	case err == nil && belongs(&found, s.pool):
		s.memory.unseen.made(name, found.UID, s.now)
		return nil
	case err == nil, apierrors.IsNotFound(err):
		s.memory.unseen.failed(name, false, s.now)
		return errNameTaken
	default:
		s.memory.unseen.lost(name, r.clock.Now())
		return fmt.Errorf("read Sandbox %q: %w", name, err)
	}
}

// refused remembers the first failure of a batch.
func (r *Reconciler) refused(s *scope, errs []error) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		s.memory.refusal.note(kindOf(err), err.Error(), s.subject(), s.now)
		return
	}
}

// kindOf tells a full quota and a refusal by policy from other failures.
func kindOf(err error) hold {
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return heldQuota
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return notHeld
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), patch.Denied(err):
		return heldDenied
	default:
		return notHeld
	}
}

// inParallel calls f for 0 to n-1, several at once, and waits for all.
func inParallel(n int, f func(int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, inFlight)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	group.Wait()
}
