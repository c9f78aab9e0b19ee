// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const saysCurtailed = saysExpired + " The tier of the namespace lets no claim live longer."

// bounded gives the namespace's tier a longest life. No webhook is there: what the user
// stores, nobody has judged.
func bounded(most time.Duration) func(*environment) {
	return func(e *environment) {
		tiers := e.setting.Current().Tiers
		tier := tiers["standard"]
		tier.MaxLifetime = metav1.Duration{Duration: most}
		tiers["standard"] = tier
	}
}

func TestTheTierEndsAClaimThatNobodyJudged(t *testing.T) {
	late := func(e *environment) *extensionsv1beta1.ClaimLifecycle {
		return &extensionsv1beta1.ClaimLifecycle{ShutdownTime: &metav1.Time{Time: e.Clock.Now().Add(300 * time.Hour)}}
	}
	cases := map[string]struct {
		start func(e *environment, ends func(*extensionsv1beta1.SandboxClaim))
		on    string
	}{
		"served from a pool": {func(e *environment, ends func(*extensionsv1beta1.SandboxClaim)) { e.bound(ends) }, "pool-1"},
		"started cold": {func(e *environment, ends func(*extensionsv1beta1.SandboxClaim)) {
			e.pool(emptyPool)
			e.Create(makeClaim("claim", ends))
			e.says(saysNotReady)
			e.report("claim", func(s *agentsv1beta1.SandboxStatus) { *s = readyStatus() })
			e.says(saysReady)
		}, "claim"},
	}
	for name, tc := range cases {
		for end, lifecycle := range map[string]func(*environment) *extensionsv1beta1.ClaimLifecycle{
			"without an end": func(*environment) *extensionsv1beta1.ClaimLifecycle { return nil }, "with a late end": late,
		} {
			t.Run(name+" "+end, func(t *testing.T) {
				e := newEnvironment(t, bounded(time.Hour))
				tc.start(e, func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle = lifecycle(e) })
				sandbox := &agentsv1beta1.Sandbox{}
				e.Get(tc.on, sandbox)
				if got := sandbox.Labels[keys.MaxLifetime]; got != "1h0m0s" {
					t.Errorf("the Sandbox notes a life of %q, want 1h0m0s", got)
				}
				e.Eventually("the owner is warned", func() error {
					if told := e.events(); !slices.ContainsFunc(told, func(said string) bool {
						return strings.HasPrefix(said, "Warning LifetimeCurtailed/Provisioning: The tier of the namespace ends this claim at ")
					}) {
						return fmt.Errorf("he is told %q", told)
					}
					return nil
				})
				e.jump("claim", 2*time.Hour)
				e.says(saysCurtailed)
				e.Gone(tc.on, &agentsv1beta1.Sandbox{})
			})
		}
	}
}

// What was served outlives the day on which its tier becomes stricter, and a bound costs
// no write.
func TestAStricterTierEndsNoClaimThatWasServed(t *testing.T) {
	writes := map[time.Duration]apiserver.Counts{}
	for _, before := range []time.Duration{0, 5 * time.Hour} {
		e := newEnvironment(t, bounded(before))
		e.bound(withLifecycle(extensionsv1beta1.ClaimLifecycle{ShutdownTime: &metav1.Time{Time: e.Clock.Now().Add(4 * time.Hour)}}))
		writes[before] = e.Writes()
		bounded(time.Hour)(e)
		e.restart()
		e.jump("claim", 2*time.Hour)
		e.Eventually("the claim was looked at, and stays", func() error {
			if got := sayReady(e.claim("claim")); got != saysReady {
				return fmt.Errorf("it says %s", got)
			}
			return nil
		})
		if _, err := e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: e.Key("claim")}); err != nil {
			t.Fatal(err)
		}
		e.says(saysReady)
		e.named("pool-1")
	}
	if diff := cmp.Diff(writes[0], writes[5*time.Hour]); diff != "" {
		t.Errorf("writes until Ready (-without a bound +with one):\n%s", diff)
	}
}

// A claim that is kept has nothing to delete where its Sandbox would be: that one is
// somebody's, stays, and the status says why.
func TestAClaimThatEndsLeavesTheSandboxOfSomebodyElse(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.pool(emptyPool)
	foreign := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Name, s.OwnerReferences, s.ResourceVersion = "claim", nil, "" })
	e.Create(foreign)
	e.Create(makeClaim("claim", withLifecycle(extensionsv1beta1.ClaimLifecycle{
		ShutdownTime: &metav1.Time{Time: e.Clock.Now().Add(-time.Minute)}, ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyRetain,
	})))
	e.says("False/ClaimExpired: Claim expired. Sandbox is not controlled by this claim; deletion skipped.")
	e.named("")
	if left := e.sandboxes(); len(left) != 1 || left[0].UID != foreign.UID || left[0].DeletionTimestamp != nil {
		t.Errorf("the Sandboxes that are left: %v, want the one of somebody else", left)
	}
}
