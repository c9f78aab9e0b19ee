// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// patience is how long a claim without a Sandbox is told nothing of errors that may
// pass.
const patience = 10 * time.Second

// scope is everything that one pass over a claim knows. gather fills the first part;
// the phases fill the rest.
type scope struct {
	// claim is the claim as the cache has it. No phase changes it.
	claim *extensionsv1beta1.SandboxClaim
	// now is the time of the pass.
	now time.Time
	// record is what this process remembers of the claim.
	record *record
	// owned are the Sandboxes that the claim controls, by their names.
	owned map[string]*agentsv1beta1.Sandbox
	// namesake is the Sandbox of the claim's name that it does not control.
	namesake *agentsv1beta1.Sandbox
	// tier is the tier of the namespace, if any tier bounds a life; else the zero tier.
	tier config.Tier
	// bindDeadline is when the claim gives up while it has no Sandbox; zero for never.
	bindDeadline time.Time

	// sandbox is the Sandbox that serves the claim. Set by phaseRecover and
	// phaseAssign.
	sandbox *agentsv1beta1.Sandbox
	// missing is true when the claim was Ready and its Sandbox is gone. Set by
	// phaseRecover.
	missing bool
	// proven is true when the apiserver said in this pass that the claim has no
	// Sandbox. Set by the barrier.
	proven bool
	// pool and template are what the claim asks for. They are the cache's: no phase changes
	// them. Set by phaseAssign.
	pool     *extensionsv1beta1.SandboxWarmPool
	template *extensionsv1beta1.SandboxTemplate
	// epoch is that of the index before pool and template were read. Set by phaseAssign.
	epoch int
	// refreshed is true when the template is the apiserver's of this pass. Set by
	// phaseAssign.
	refreshed bool
	// launched is warm or cold when this pass gave the claim its Sandbox. Set by
	// phaseAssign.
	launched string
	// silent is true when the pass has nothing to say: the claim waits, or was seen in
	// a state that is no more. Set by any phase.
	silent bool
	// waits is true when the claim has nothing and is to be woken by what its pool gets. Set
	// by phaseAssign.
	waits bool
	// blind is true when nobody could say whether today's rules admit a Sandbox of the
	// pool. Set by phaseAssign.
	blind bool
	// skipped is true when an expired claim names a Sandbox that is not its own. Set by
	// phaseExpiry.
	skipped bool
	// cleaned is true when the Sandbox of an expired claim is gone. Set by phaseExpiry.
	cleaned bool

	// tolerated is why the Pod keeps metadata that is not what the claim asks for, or that
	// today's rules or template refuse; nil when it may. Set by phaseMetadata and phaseMaintain.
	tolerated error

	// problem is the error that ended the pass.
	problem error
	// wake is when the next pass is due at the latest; zero for never.
	wake time.Time
}

// key is the name of the claim.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.claim.Namespace, Name: s.claim.Name}
}

// poolKey is the name of the pool that the claim asks.
func (s *scope) poolKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.claim.Namespace, Name: s.claim.Spec.WarmPoolRef.Name}
}

// wakeAt asks for a pass at that time, or at an earlier one that was asked for.
func (s *scope) wakeAt(at time.Time) { s.wake = earlier(s.wake, at) }

// recorded is the Sandbox of which the claim's own record, or this process's, says
// that it serves the claim, if the claim controls it.
func (s *scope) recorded() *agentsv1beta1.Sandbox {
	if sandbox := s.owned[s.claim.Status.SandboxStatus.Name]; sandbox != nil {
		return sandbox
	}
	return s.owned[s.record.bound]
}

// finished is the Finished condition of the claim's Sandbox, or the one that the claim
// remembers; nil when the Sandbox was gone before the time was up.
func (s *scope) finished() *metav1.Condition {
	if sandbox := s.recorded(); sandbox != nil {
		return meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionFinished)
	}
	if s.record.lost {
		return nil
	}
	return meta.FindStatusCondition(s.claim.Status.Conditions, agentsv1beta1.ConditionFinished)
}

// unbound says whether the claim neither has nor had a Sandbox, and no write is on its way
// that may give it one. What comes after it said that it gave up is not its Sandbox.
func (s *scope) unbound() bool {
	if s.claim.Status.SandboxStatus.Name != "" || s.record.bound != "" || wasReady(s.claim, s.record) {
		return false
	}
	return s.announced() || len(s.owned) == 0 && s.record.adopting == nil && !s.record.creating
}

// expiresAt is when the claim's time is up; zero for never.
func (s *scope) expiresAt() time.Time {
	at := earlier(expiry(s.claim, s.finished()), s.tierEnd())
	if s.unbound() {
		at = earlier(at, s.bindDeadline)
	}
	return at
}

// expired says whether the claim's time is up.
func (s *scope) expired() bool {
	at := s.expiresAt()
	return !at.IsZero() && !s.now.Before(at)
}

// gaveUp says whether the claim expired because it never got a Sandbox.
func (s *scope) gaveUp() bool {
	return s.unbound() && !s.bindDeadline.IsZero() && !s.now.Before(s.bindDeadline)
}

// mayPass says whether the pass ended in an error that may be gone before anybody
// could read of it. A claim that has a Sandbox does not turn unready for it.
func (s *scope) mayPass() bool {
	return s.problem != nil && patch.Passing(s.problem) && !lasts(s.problem) &&
		(s.sandbox != nil || s.now.Before(s.record.firstSeen.Add(patience)))
}

// announced says whether the stored status says already that the claim has expired.
func (s *scope) announced() bool { return storedReason(s.claim) == ReasonClaimExpired }
