// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// staleRetry is when a claim is looked at again that the cache has not as it is.
const staleRetry = 100 * time.Millisecond

// prove asks the apiserver whether the claim is as it was seen and has no Sandbox.
// When it has one, that becomes the pass's; when the claim is not as it was seen, the
// pass falls silent. Only after it returned with neither may a Sandbox be made or
// taken for the claim.
func (r *Reconciler) prove(ctx context.Context, s *scope) error {
	if s.proven {
		return nil
	}
	current, err := r.current(ctx, s)
	if err != nil {
		return err
	}
	if !current {
		s.silent = true
		s.wakeAt(s.now.Add(staleRetry))
		return nil
	}
	if err := r.readOwned(ctx, s); err != nil {
		return err
	}
	namesake, err := lookup.Object(ctx, r.live, s.claim.Namespace, s.claim.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	s.note(s.claim.Name, namesake)
	s.proven = true
	s.sandbox = s.chosen()
	return nil
}

// readOwned lists what the claim controls, unless nobody can have given it anything: the
// apiserver goes through all Sandboxes of the namespace for it.
func (r *Reconciler) readOwned(ctx context.Context, s *scope) error {
	if !r.mustProve(s) {
		return nil
	}
	var labelled agentsv1beta1.SandboxList
	err := r.live.List(ctx, &labelled, client.InNamespace(s.claim.Namespace), client.MatchingLabels{keys.ClaimUID: string(s.claim.UID)})
	if err != nil {
		return fmt.Errorf("read the Sandboxes of the claim: %w", err)
	}
	s.owned = map[string]*agentsv1beta1.Sandbox{}
	for i := range labelled.Items {
		s.note(labelled.Items[i].Name, &labelled.Items[i])
	}
	return nil
}

// current says whether the claim still exists as the pass saw it.
func (r *Reconciler) current(ctx context.Context, s *scope) (bool, error) {
	now, err := lookup.Object(ctx, r.live, s.claim.Namespace, s.claim.Name, &extensionsv1beta1.SandboxClaim{})
	if err != nil || now == nil {
		return false, err
	}
	return now.UID == s.claim.UID && now.DeletionTimestamp == nil && now.Generation == s.claim.Generation &&
		now.Status.SandboxStatus.Name == s.claim.Status.SandboxStatus.Name, nil
}

// mustProve says whether the claim may have a Sandbox that the cache does not show.
func (r *Reconciler) mustProve(s *scope) bool {
	return s.record.touched || s.claim.Status.SandboxStatus.Name != "" || wasReady(s.claim, s.record) || r.inherited.has(s.claim.UID)
}

// chosen is the Sandbox that serves the claim: the one on record, or else the best of
// those that it controls.
func (s *scope) chosen() *agentsv1beta1.Sandbox {
	if recorded := s.recorded(); recorded != nil {
		return recorded
	}
	if len(s.owned) == 0 {
		return nil
	}
	return slices.MinFunc(slices.Collect(maps.Values(s.owned)), func(a, b *agentsv1beta1.Sandbox) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// rank is lower for a Sandbox that is of more use.
func rank(sandbox *agentsv1beta1.Sandbox) int {
	switch {
	case sandbox.DeletionTimestamp != nil:
		return 2
	case meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady):
		return 0
	default:
		return 1
	}
}

// settle finds out what became of a write whose answer never came.
func (r *Reconciler) settle(ctx context.Context, s *scope) error {
	if s.record.adopting != nil {
		if err := r.settleAdoption(ctx, s, s.record.adopting); err != nil {
			return err
		}
	}
	if !s.record.creating {
		return nil
	}
	sandbox, err := lookup.Object(ctx, r.live, s.claim.Namespace, s.claim.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	s.note(s.claim.Name, sandbox)
	if serving := s.owned[s.claim.Name]; serving != nil {
		r.bind(s, serving, blueprint.LaunchCold)
		return nil
	}
	if sandbox != nil {
		s.mayStillBeMade()
	}
	return nil
}

// mayStillBeMade notes whether a creation whose answer was lost may still succeed, once what
// refuses it now, or is in its place, does so no more.
func (s *scope) mayStillBeMade() {
	if s.record.creating = s.record.doubts(s.now); s.record.creating {
		s.wakeAt(s.record.lostAt.Add(patch.DoubtFor))
	}
}

func (r *Reconciler) settleAdoption(ctx context.Context, s *scope, attempt *adoption) error {
	sandbox, err := lookup.Object(ctx, r.live, s.claim.Namespace, attempt.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	s.note(attempt.Name, sandbox)
	switch {
	case s.owned[attempt.Name] != nil:
		r.bind(s, s.owned[attempt.Name], blueprint.LaunchWarm)
	case !attempt.sent(sandbox):
		// The version that locks the write is no more, so that it can never succeed.
		s.record.adopting = nil
		r.index.Return(attempt.Member, true)
	}
	return nil
}
