// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// outlived is how old a claim is that no pool waits for any more: what it waits for
// itself is something else.
const outlived = time.Minute

// want is what a claim is about to take from the cluster.
type want int

const (
	// wantsNothing has what it asked for, or was told that it cannot have it.
	wantsNothing want = iota
	// wantsMember waits for a member of the pool.
	wantsMember
	// wantsStart has a Sandbox of its own on the way to Ready, or can only have such a
	// one.
	wantsStart
)

// wantOf reads a claim.
func wantOf(claim *extensionsv1beta1.SandboxClaim) want {
	ready := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady)
	name := claim.Status.SandboxStatus.Name
	switch {
	case claim.DeletionTimestamp != nil, meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionReady):
		return wantsNothing
	case name == "" && ready != nil && ready.Reason != extensionsv1beta1.ReasonSandboxNotReady:
		return wantsNothing // it was refused
	case name == "" && len(claim.Spec.Env)+len(claim.Spec.VolumeClaimTemplates) == 0:
		return wantsMember
	case name == "", name == claim.Name && meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionFinished) == nil:
		return wantsStart
	default:
		return wantsNothing
	}
}

// demand counts what the claims of a pool want.
type demand struct {
	// members are claims that wait for one, and still will when it comes.
	members int
	// bound are claims that have theirs and have not been told yet.
	bound int
	// starts are claims whose Sandboxes are starting, or are about to.
	starts int
}

// demandOf counts the young ones of those that want something. A claim waits for a
// member for so long; has says whether it controls a Sandbox already.
func demandOf(claims []extensionsv1beta1.SandboxClaim, now time.Time, waits time.Duration, has func(types.UID) bool) demand {
	var d demand
	for i := range claims {
		claim := &claims[i]
		if !now.Before(claim.CreationTimestamp.Add(outlived)) {
			continue
		}
		switch want := wantOf(claim); {
		case want == wantsStart:
			d.starts++
		case want == wantsMember && has(claim.UID):
			d.bound++
		case want == wantsMember && now.Before(claim.CreationTimestamp.Add(waits)):
			d.members++
		case want == wantsMember:
			d.starts++
		}
	}
	return d
}

func (d demand) none() bool { return d == demand{} }

// Yield bounds how long a pool that misses members lets its claims go first. Counted
// from when it first does, and not again until no claim waits or the pool is full:
// under a steady load a pool that waited for a moment without claims would run dry.
type Yield struct {
	// ToBindings is for claims that members can serve: milliseconds each.
	ToBindings time.Duration
	// ToColdStarts is for claims whose Sandboxes are starting.
	ToColdStarts time.Duration
	// ColdStartAfter is how long a claim waits for a member before it starts cold.
	ColdStartAfter time.Duration
}

// yielding is since when a pool has let its claims go first; zero when it does not.
type yielding struct{ since time.Time }

// until is when the pool waits no longer for its claims.
func (y *yielding) until(limits Yield, claims demand, now time.Time) time.Time {
	if claims.none() {
		y.since = time.Time{}
		return now
	}
	if y.since.IsZero() {
		y.since = now
	}
	if claims.starts > 0 {
		return y.since.Add(limits.ToColdStarts)
	}
	return y.since.Add(limits.ToBindings)
}

// satisfied notes that the pool misses nothing, so that it may yield anew.
func (y *yielding) satisfied() { y.since = time.Time{} }
