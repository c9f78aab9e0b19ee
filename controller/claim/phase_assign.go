// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

const (
	// notFoundAfter is how old a claim must be before it is told that its pool or
	// template does not exist: the three are often applied in one go.
	notFoundAfter = 2 * time.Second
	// notFoundRecheck is when it is looked for again, should its event be missed.
	notFoundRecheck = time.Minute
	// firstPending is when a Sandbox in the place of the claim's is looked at again, and
	// lastPending when it is there for long: its end wakes the claim.
	firstPending = 200 * time.Millisecond
	lastPending  = 5 * time.Second
)

// phaseAssign gives a claim that has no Sandbox one: of its pool, or else a new one.
func (r *Reconciler) phaseAssign(ctx context.Context, s *scope) error {
	if s.sandbox != nil || s.missing {
		return nil
	}
	if s.namesake != nil && !leaving(s) {
		return nameTaken(s)
	}
	s.epoch = r.index.Epoch()
	if err := r.findBlueprint(ctx, s); err != nil || s.silent {
		return err
	}
	if s.record.askedAt.IsZero() {
		s.record.askedAt = s.now
	}
	if fromPool(s) {
		if err := r.adopt(ctx, s); err != nil || s.silent || s.sandbox != nil {
			return err
		}
		if r.awaitRefill(s) {
			return nil
		}
	}
	err := r.create(ctx, s)
	if err != nil && fromPool(s) {
		r.wait(s) // what the pool gets may serve it before another try does
	}
	return err
}

// awaitRefill lets the claim wait while its pool is about to get Sandboxes, and says whether it
// does.
func (r *Reconciler) awaitRefill(s *scope) bool {
	until := s.record.askedAt.Add(r.settings.ColdStartAfter)
	if !s.now.Before(until) || !r.refills(s) {
		return false
	}
	s.silent = len(s.claim.Status.Conditions) == 0 // what was said before is true no more
	s.wakeAt(until)
	r.wait(s)
	return true
}

// wait lets the claim wait for what its pool gets. What this pass found not to be fit may be so
// now if it was reconsidered meanwhile, of which a claim that did not wait yet was not told.
func (r *Reconciler) wait(s *scope) {
	s.waits = true
	if r.index.Epoch() != s.epoch {
		s.wakeAt(s.now)
	}
}

// fromPool says whether a waiting Sandbox can serve the claim: it has no variables or
// volumes of its own, and no creation is on its way. What was begun is finished.
func fromPool(s *scope) bool {
	return s.record.adopting != nil || len(s.claim.Spec.Env) == 0 && len(s.claim.Spec.VolumeClaimTemplates) == 0 && !s.record.creating
}

func (r *Reconciler) refills(s *scope) bool {
	members, _ := r.index.Size(s.poolKey())
	return refills(s.pool, members)
}

// leaving says whether the Sandbox in the place of the claim's is about to go.
func leaving(s *scope) bool {
	return s.namesake.DeletionTimestamp != nil || servedNamesake(s.namesake, s.claim)
}

func nameTaken(s *scope) error {
	return refuse(ReasonReconcilerError,
		"sandbox %q is not controlled by claim %q. Please use a different claim name or delete the sandbox manually", s.namesake.Name, s.claim.Name)
}

// pending says that the place of the claim's Sandbox is not free yet.
func pending(s *scope) error {
	s.wakeAt(s.now.Add(s.record.nextPending()))
	return refuse(ReasonSandboxCreatePending, messageCreatePending)
}

// findBlueprint finds the pool that the claim asks and the pool's template.
func (r *Reconciler) findBlueprint(ctx context.Context, s *scope) error {
	name := s.claim.Spec.WarmPoolRef.Name
	pool, err := find(ctx, r, s, name, &extensionsv1beta1.SandboxWarmPool{})
	if err != nil || s.silent {
		return err
	}
	if pool == nil {
		return refuse(ReasonWarmPoolNotFound, "SandboxWarmPool %q not found", name)
	}
	name = pool.Spec.TemplateRef.Name
	template, err := find(ctx, r, s, name, &extensionsv1beta1.SandboxTemplate{})
	if err != nil || s.silent {
		return err
	}
	if template == nil {
		return refuse(ReasonTemplateNotFound, "SandboxTemplate %q not found", name)
	}
	s.pool, s.template = pool, template
	return nil
}

// find reads an object that the claim needs: from the cache, and from the apiserver
// before it is called absent, as is what is being deleted. Until the claim is old enough for that, the pass falls
// silent. What is found belongs to the cache and must not be changed. Others write its
// status all the time, and no claim is to wait until their writes are seen.
func find[T client.Object](ctx context.Context, r *Reconciler, s *scope, name string, into T) (T, error) {
	var none T
	found, err := lookup.Staying(ctx, lookup.Glancing(r.client), s.claim.Namespace, name, into)
	if err != nil {
		return none, err
	}
	if any(found) != any(none) {
		return found, nil
	}
	if due := s.record.firstSeen.Add(notFoundAfter); s.now.Before(due) {
		s.silent = true
		s.wakeAt(due)
		return none, nil
	}
	s.wakeAt(s.now.Add(notFoundRecheck))
	fresh, isObject := into.DeepCopyObject().(T)
	if !isObject {
		return none, fmt.Errorf("copy %T", into)
	}
	return lookup.Staying(ctx, r.live, s.claim.Namespace, name, fresh)
}

// cachedTemplate reads a template as find does, from the cache alone; nil when there is none.
func (r *Reconciler) cachedTemplate(ctx context.Context, s *scope, name string) (*extensionsv1beta1.SandboxTemplate, error) {
	return lookup.Staying(ctx, lookup.Glancing(r.client), s.claim.Namespace, name, &extensionsv1beta1.SandboxTemplate{})
}

// options are what a Sandbox depends on besides its template.
func (r *Reconciler) options(ctx context.Context, s *scope) (blueprint.Options, error) {
	label, err := lookup.TierLabel(ctx, r.client, r.live, s.claim.Namespace)
	if err != nil {
		return blueprint.Options{}, err
	}
	options, invalid := blueprint.OptionsFor(r.settings.Current(), label, s.template)
	if invalid != nil {
		return blueprint.Options{}, refuse(ReasonReconcilerError, "template %q: %w", s.template.Name, invalid)
	}
	return options, nil
}
