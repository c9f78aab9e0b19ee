// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// makeClaim gives a claim of the pool that came a moment before noon and that nobody
// has answered.
func makeClaim(edits ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "claim", CreationTimestamp: metav1.NewTime(noon().Add(-time.Second)),
	}}
	claim.Spec.WarmPoolRef.Name = "pool"
	for _, change := range edits {
		change(claim)
	}
	return claim
}

// answered is a claim whose status names a Sandbox and has a condition.
func answered(sandbox string, kind string, status metav1.ConditionStatus) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) {
		c.Status.SandboxStatus.Name = sandbox
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status})
	}
}

func TestWantOf(t *testing.T) {
	const ready, finished = agentsv1beta1.ConditionReady, agentsv1beta1.ConditionFinished
	cases := map[string]struct {
		claim *extensionsv1beta1.SandboxClaim
		want  want
	}{
		"a new claim waits for a member": {makeClaim(), wantsMember},
		"one with variables can only have a Sandbox of its own": {
			makeClaim(func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "A"}} }), wantsStart,
		},
		"one with volumes can only have a Sandbox of its own": {
			makeClaim(func(c *extensionsv1beta1.SandboxClaim) {
				c.Spec.VolumeClaimTemplates = []agentsv1beta1.PersistentVolumeClaimTemplate{{Spec: corev1.PersistentVolumeClaimSpec{}}}
			}), wantsStart,
		},
		"one that was refused wants nothing": {makeClaim(answered("", ready, metav1.ConditionFalse)), wantsNothing},
		"one that waits again after it was refused": {
			makeClaim(answered("", ready, metav1.ConditionFalse), func(c *extensionsv1beta1.SandboxClaim) {
				c.Status.Conditions[0].Reason = extensionsv1beta1.ReasonSandboxNotReady
			}), wantsMember,
		},
		"one whose own Sandbox is starting":                  {makeClaim(answered("claim", ready, metav1.ConditionFalse)), wantsStart},
		"one whose own Sandbox is ready":                     {makeClaim(answered("claim", ready, metav1.ConditionTrue)), wantsNothing},
		"one that has a member":                              {makeClaim(answered("pool-1", ready, metav1.ConditionTrue)), wantsNothing},
		"one whose member ceased to be ready":                {makeClaim(answered("pool-1", ready, metav1.ConditionFalse)), wantsNothing},
		"one that is being deleted":                          {makeClaim(func(c *extensionsv1beta1.SandboxClaim) { c.DeletionTimestamp = new(metav1.NewTime(noon())) }), wantsNothing},
		"one whose own Sandbox has ended wants nothing more": {makeClaim(answered("claim", ready, metav1.ConditionFalse), answered("claim", finished, metav1.ConditionTrue)), wantsNothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := wantOf(tc.claim); got != tc.want {
				t.Errorf("wantOf() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDemandCountsTheYoung(t *testing.T) {
	old := func(c *extensionsv1beta1.SandboxClaim) { c.CreationTimestamp = metav1.NewTime(noon().Add(-outlived)) }
	starting := answered("claim", agentsv1beta1.ConditionReady, metav1.ConditionFalse)
	patient := func(c *extensionsv1beta1.SandboxClaim) {
		c.CreationTimestamp = metav1.NewTime(noon().Add(-2 * time.Second))
	}
	served := func(c *extensionsv1beta1.SandboxClaim) { c.UID = "served" }
	claims := []extensionsv1beta1.SandboxClaim{
		*makeClaim(), *makeClaim(), *makeClaim(starting), *makeClaim(old), *makeClaim(old, starting), *makeClaim(served), *makeClaim(served, starting),
		*makeClaim(patient),
	}
	has := func(claim types.UID) bool { return claim == "served" }
	if diff := cmp.Diff(demand{members: 2, bound: 1, starts: 3}, demandOf(claims, noon(), 2*time.Second, has), cmp.AllowUnexported(demand{})); diff != "" {
		t.Errorf("demandOf() (-want +got):\n%s", diff)
	}
}

func TestYieldingIsBounded(t *testing.T) {
	limits := Yield{ToBindings: time.Second, ToColdStarts: 10 * time.Second}
	binding, cold, none := demand{members: 1}, demand{members: 1, starts: 1}, demand{}
	type step struct {
		after  time.Duration
		claims demand
		full   bool
		yields bool
	}
	cases := map[string][]step{
		"no claim, no wait":                         {{0, none, false, false}},
		"a claim that is served is let go first":    {{0, binding, false, true}, {999 * time.Millisecond, binding, false, true}},
		"claims that never end delay a refill once": {{0, binding, false, true}, {time.Second, binding, false, false}, {time.Minute, binding, false, false}},
		"a moment without claims allows it again":   {{0, binding, false, true}, {2 * time.Second, none, false, false}, {3 * time.Second, binding, false, true}},
		"a full pool may yield again":               {{0, binding, false, true}, {2 * time.Second, binding, true, false}, {3 * time.Second, binding, false, true}},
		"cold starts are let go first for longer":   {{0, binding, false, true}, {2 * time.Second, cold, false, true}, {10 * time.Second, cold, false, false}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			var y yielding
			for i, s := range steps {
				now := noon().Add(s.after)
				if got := now.Before(y.until(limits, s.claims, now)); got != s.yields {
					t.Errorf("step %d: yields = %t, want %t", i, got, s.yields)
				}
				if s.full {
					y.satisfied()
				}
			}
		})
	}
}

func TestDecideLetsClaimsGoFirst(t *testing.T) {
	const (
		replenish = extensionsv1beta1.UpdateStrategyOnReplenish
		recreate  = extensionsv1beta1.UpdateStrategyRecreate
	)
	cases := map[string]struct {
		situation        situation
		create, withheld int
	}{
		"nobody waits: all that is missing is made": {situation{desired: 10, yields: true}, 10, 0},
		"members are there for those who wait: nothing is made": {
			situation{desired: 10, members: many(4), claims: demand{members: 4}, yields: true}, 0, 6,
		},
		"too few are there: the others are made for those who wait, and no more": {
			situation{desired: 10, members: many(4), claims: demand{members: 7}, yields: true}, 3, 3,
		},
		"what is on its way serves them too": {
			situation{desired: 10, members: many(2, starting(time.Second)), unseen: 3, claims: demand{members: 6}, yields: true}, 1, 4,
		},
		"what waits for a node serves nobody": {
			situation{desired: 4, members: many(2, starting(time.Second), waitsForNode), claims: demand{members: 2}, yields: true}, 2, 0,
		},
		"stale members serve under OnReplenish": {
			situation{desired: 3, strategy: replenish, members: many(1, stale), claims: demand{members: 1}, yields: true}, 0, 2,
		},
		"stale members serve nobody under Recreate": {
			situation{desired: 3, strategy: recreate, members: many(1, stale), claims: demand{members: 1}, yields: true}, 1, 1,
		},
		"those that have theirs need none, and still go first": {situation{desired: 5, claims: demand{bound: 3}, yields: true}, 0, 5},
		"never more than are missing":                          {situation{desired: 2, claims: demand{members: 100}, yields: true}, 2, 0},
		"cold starts have the cluster to themselves":           {situation{desired: 5, claims: demand{starts: 3}, yields: true}, 0, 5},
		"but not for ever":                                     {situation{desired: 5, members: many(1), claims: demand{members: 1, starts: 3}}, 4, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.situation.now, tc.situation.grace, tc.situation.known = noon(), grace, true
			got := decide(tc.situation)
			if got.create != tc.create || got.withheld != tc.withheld {
				t.Errorf("decide() creates %d and withholds %d, want %d and %d", got.create, got.withheld, tc.create, tc.withheld)
			}
		})
	}
}
