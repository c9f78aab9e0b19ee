// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// adoptionTries is how many Sandboxes a pass may lose to others before it says so, and how
// often it tries for one that changes meanwhile.
const adoptionTries = 3

// adopt takes a waiting Sandbox of the pool, if there is one.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	unfit := map[types.UID]struct{}{}
	for lost := 0; lost < adoptionTries; {
		attempt, found := r.candidate(ctx, s, unfit)
		if !found {
			return nil
		}
		if err := r.proveFor(ctx, s, attempt); err != nil || s.silent || s.sandbox != nil {
			return err
		}
		fits, err := r.tryAdopt(ctx, s, attempt, unfit)
		if err != nil || s.silent || s.sandbox != nil {
			return err
		}
		if fits {
			lost++
		}
	}
	s.wakeAt(s.now.Add(staleRetry))
	return refuse(ReasonAdoptionConflict, "%d Sandboxes of pool %q went to others at the same moment", adoptionTries, s.pool.Name)
}

// candidate is the Sandbox to try next: the one whose adoption was never answered, the
// one that the claim names already, or else the best of the index.
func (r *Reconciler) candidate(ctx context.Context, s *scope, unfit map[types.UID]struct{}) (adoption, bool) {
	if s.record.adopting != nil {
		return *s.record.adopting, true
	}
	if s.blind || !r.judges() {
		r.index.Wait(s.poolKey(), s.key())
		return adoption{}, false
	}
	if named, found := r.named(ctx, s); found {
		if _, tried := unfit[named.UID]; !tried {
			return adoption{Member: named}, true
		}
		r.index.Return(named, false)
	}
	member, found := r.index.Take(s.poolKey(), s.key(), func(m candidates.Member) bool {
		_, tried := unfit[m.UID]
		return tried
	})
	return adoption{Member: member}, found
}

// named takes the Sandbox that the claim's annotation names, if its pool still has it.
func (r *Reconciler) named(ctx context.Context, s *scope) (candidates.Member, bool) {
	name := namedBefore(s.claim)
	if name == "" {
		return candidates.Member{}, false
	}
	sandbox, err := lookup.Object(ctx, r.client, s.claim.Namespace, name, &agentsv1beta1.Sandbox{})
	if err != nil || sandbox == nil || !ofPool(sandbox, s.pool) {
		return candidates.Member{}, false
	}
	return r.index.TakeByUID(sandbox.UID)
}

// ofPool says whether a Sandbox belongs to a pool and may be handed out.
func ofPool(sandbox *agentsv1beta1.Sandbox, pool *extensionsv1beta1.SandboxWarmPool) bool {
	name, belongs := poolOf(sandbox)
	return belongs && name == pool.Name && relations.Handable(sandbox)
}

// proveFor passes the barrier before a Sandbox is taken that may not be the claim's
// first. What was taken from the index is given back unless it passes.
func (r *Reconciler) proveFor(ctx context.Context, s *scope, attempt adoption) error {
	if s.record.adopting != nil || !r.mustProve(s) {
		return nil
	}
	err := r.prove(ctx, s)
	if err != nil || s.silent || s.sandbox != nil {
		r.index.Return(attempt.Member, false)
	}
	return err
}

// tryAdopt tries to take one Sandbox. It reports false for one that turned out not to
// be fit, and true for one that was lost to somebody else.
func (r *Reconciler) tryAdopt(ctx context.Context, s *scope, attempt adoption, unfit map[types.UID]struct{}) (fits bool, err error) {
	unfit[attempt.UID] = struct{}{}
	sandbox := attempt.judged
	if sandbox == nil {
		if sandbox, err = r.choose(ctx, s, attempt); err != nil || sandbox == nil {
			return false, err
		}
	}
	for try := 0; sandbox != nil && s.sandbox == nil; try++ {
		if try == adoptionTries {
			r.giveBack(s, attempt, true) // it changes faster than it can be taken
			return true, nil
		}
		if err := r.transfer(ctx, s, attempt, sandbox); err != nil {
			return true, err
		}
		if s.sandbox == nil {
			sandbox, err = r.contested(ctx, s, attempt, sandbox)
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// choose reads the Sandbox of an attempt of which nothing was written yet, and judges it as
// the cache shows it. One that is not fit is given back, and none is returned.
func (r *Reconciler) choose(ctx context.Context, s *scope, attempt adoption) (*agentsv1beta1.Sandbox, error) {
	sandbox, err := lookup.Object(ctx, r.client, s.claim.Namespace, attempt.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		r.index.Return(attempt.Member, false)
		return nil, err
	}
	named := namedBefore(s.claim) == attempt.Name
	if sandbox == nil || sandbox.UID != attempt.UID || !ofPool(sandbox, s.pool) || !named && !usable(sandbox) {
		r.index.Return(attempt.Member, true)
		return nil, nil
	}
	if fits, err := r.fits(ctx, s, attempt, sandbox); err != nil || !fits {
		r.index.Return(attempt.Member, false)
		return nil, err
	}
	return sandbox, nil
}

// fits says whether today's template, tier and policies let a Sandbox be handed out. What
// the template no longer describes is withheld from all claims.
func (r *Reconciler) fits(ctx context.Context, s *scope, attempt adoption, sandbox *agentsv1beta1.Sandbox) (bool, error) {
	outdated, err := r.outdated(ctx, s, sandbox)
	if outdated {
		r.index.WithholdForm(s.poolKey(), formOf(sandbox), s.epoch)
	}
	if err != nil || outdated || s.silent {
		return false, err
	}
	return r.admitted(ctx, s, attempt, sandbox), nil
}

// outdated says whether a Sandbox may not be handed out any more, because its Pod runs
// under a RuntimeClass that the tier does not take now, or because the pool's strategy
// forbids it: the template describes another one. What it says is true of all of its form.
func (r *Reconciler) outdated(ctx context.Context, s *scope, sandbox *agentsv1beta1.Sandbox) (bool, error) {
	below, err := r.belowFloor(ctx, sandbox)
	if err != nil || below || !judgesStaleness(s.pool) {
		return below, err
	}
	if err := r.refresh(ctx, s); err != nil || s.silent {
		return false, err
	}
	options, err := r.options(ctx, s)
	if err != nil {
		return false, err
	}
	return blueprint.Stale(sandbox, s.template, options)
}

// refresh reads the template from the apiserver, once in a pass: the cache may not have
// seen yet what was changed before the claim was made. When it is gone, or goes, the pass falls
// silent until the cache has seen that.
func (r *Reconciler) refresh(ctx context.Context, s *scope) error {
	if s.refreshed {
		return nil
	}
	current, err := lookup.Staying(ctx, r.live, s.claim.Namespace, s.template.Name, &extensionsv1beta1.SandboxTemplate{})
	switch {
	case err != nil:
		return err
	case current == nil:
		s.silent = true
		s.wakeAt(s.now.Add(staleRetry))
	default:
		s.template, s.refreshed = current, true
	}
	return nil
}

// belowFloor says whether today's tier of the namespace lets no Pod run under the
// RuntimeClass of a Sandbox. It may have been another when the pool made the Sandbox.
func (r *Reconciler) belowFloor(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (bool, error) {
	label, err := lookup.TierLabel(ctx, r.client, r.live, sandbox.Namespace)
	if err != nil {
		return false, err
	}
	_, tier, known := r.settings.Current().TierOf(label)
	return known && tier.RuntimeClass.Refusal(ptr.Deref(sandbox.Spec.PodTemplate.Spec.RuntimeClassName, "")) != "", nil
}

// judges says whether anybody can say which Sandboxes today's rules refuse. Until then
// claims get none of a pool's, and are woken when it changes.
func (r *Reconciler) judges() bool {
	return r.settings.Verdicts == nil || r.settings.Verdicts.Ready()
}

// admitted says whether today's rules admit a Sandbox. One that they refuse is withheld
// until they change.
func (r *Reconciler) admitted(ctx context.Context, s *scope, attempt adoption, sandbox *agentsv1beta1.Sandbox) bool {
	if r.settings.Verdicts == nil {
		return true
	}
	v := r.settings.Verdicts.Of(ctx, sandbox)
	switch v.State {
	case verdict.Admitted:
		return true
	case verdict.Refused:
		r.index.Withhold(attempt.UID, s.epoch)
	case verdict.Unknown:
		s.blind = true // it will hardly be better with the next one
	}
	log.FromContext(ctx).Info("A Sandbox that waits is not handed out", "sandbox", sandbox.Name, "verdict", v.State.String(), "reason", v.Reason)
	return false
}

// transfer makes the claim the controller of a Sandbox, in one write that is locked by
// the version that belongs to the pool. When somebody else wrote first, it leaves
// neither an error nor a Sandbox.
func (r *Reconciler) transfer(ctx context.Context, s *scope, attempt adoption, sandbox *agentsv1beta1.Sandbox) error {
	pod, err := r.podMetadata(ctx, s, sandbox)
	if err != nil {
		if s.record.adopting == nil {
			r.index.Return(attempt.Member, false)
		}
		return err
	}
	again := attempt.sent(sandbox)
	attempt.judged = sandbox
	s.record.touched, s.record.adopting = true, &attempt
	taken := handOver(sandbox, s.claim, pod)
	lifetime.Note(taken, s.tier)
	tracing.Hand(ctx, taken)
	err = r.client.Patch(ctx, taken, metadataPatch(sandbox, taken), fieldOwner)
	switch {
	case err == nil:
		r.bind(s, taken, blueprint.LaunchWarm)
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		r.metrics.conflicts.Inc()
		return nil
	case !patch.Settled(err):
		attempt.lostAt = r.clock.Now()
	case again && s.now.Before(attempt.lostAt.Add(patch.DoubtFor)): // what refuses a write says nothing of the same one before
		s.wakeAt(attempt.lostAt.Add(patch.DoubtFor))
	default:
		s.record.adopting = nil
		r.index.Postpone(attempt.Member)
	}
	return fmt.Errorf("take Sandbox %q from pool %q: %w", sandbox.Name, s.pool.Name, err)
}

// contested looks at a Sandbox that changed since it was judged, while it was being taken.
// It may be the claim's already. One that only had its status written is given for another
// try.
func (r *Reconciler) contested(ctx context.Context, s *scope, attempt adoption, judged *agentsv1beta1.Sandbox) (*agentsv1beta1.Sandbox, error) {
	sandbox, err := lookup.Object(ctx, r.live, s.claim.Namespace, attempt.Name, &agentsv1beta1.Sandbox{})
	switch {
	case err != nil:
		return nil, err
	case sandbox != nil && sandbox.UID == attempt.UID && serves(sandbox, s.claim):
		r.bind(s, sandbox, blueprint.LaunchWarm)
		return sandbox, nil
	case sandbox != nil && sandbox.UID == attempt.UID && ofPool(sandbox, s.pool) && usable(sandbox) &&
		sandbox.ResourceVersion != judged.ResourceVersion && formOf(sandbox) == formOf(judged):
		return sandbox, nil
	case attempt.sent(sandbox):
		return nil, nil
	default:
		r.giveBack(s, attempt, sandbox == nil || sandbox.ResourceVersion != judged.ResourceVersion)
		return nil, nil
	}
}

// giveBack ends an attempt that certainly failed.
func (r *Reconciler) giveBack(s *scope, attempt adoption, outdated bool) {
	s.record.adopting = nil
	r.index.Return(attempt.Member, outdated)
}

// bind notes that the claim has its Sandbox.
func (r *Reconciler) bind(s *scope, sandbox *agentsv1beta1.Sandbox, launched string) {
	s.record.adopting, s.record.creating, s.record.lostAt, s.record.pending = nil, false, time.Time{}, 0
	s.sandbox, s.launched = sandbox, launched
	s.owned[sandbox.Name] = sandbox
	r.found(s)
	r.tellLaunch(s)
	r.tellCurtailed(s)
	r.countLaunch(s)
}

// podMetadata is what the metadata of the Sandbox's Pod is to be.
func (r *Reconciler) podMetadata(ctx context.Context, s *scope, sandbox *agentsv1beta1.Sandbox) (agentsv1beta1.PodMetadata, error) {
	template := s.template
	if template == nil || template.Name != relations.TemplateOfSandbox(sandbox) {
		named, err := r.cachedTemplate(ctx, s, relations.TemplateOfSandbox(sandbox))
		if err != nil {
			return agentsv1beta1.PodMetadata{}, err
		}
		template = named
	}
	if template == nil {
		template = asTemplate(sandbox)
	}
	pod, err := blueprint.ClaimPodMetadata(s.claim, template)
	return pod, inWordsOfContract(s.claim, template, err)
}
