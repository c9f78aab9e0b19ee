// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// withCeiling gives the tier a ceiling.
func withCeiling(reopened config.Reopened) func(*environment) {
	return func(e *environment) {
		tier := e.platform.Tiers["standard"]
		tier.Egress.Ceiling, tier.Egress.Reopened = "public", reopened
		e.platform.Tiers["standard"] = tier
	}
}

// wide is a NetworkPolicy that was in the namespace before its first Sandbox.
func wide() *networkingv1.NetworkPolicy {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{
		{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "169.254.169.254/32"}}}},
	}
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	return policy
}

// Policies add up, so that one which is older than the first Sandbox would open it. No Pod
// starts until that is mended, the Sandbox says why, and one that runs stays.
func TestNoPodStartsWhileAPolicyOpensMoreThanItsTier(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, withCeiling(""))
	e.Create(wide())
	e.Create(makeSandbox())
	e.Eventually("the Sandbox says which policy keeps it from starting", func() error {
		ready := meta.FindStatusCondition(e.sandbox(boxName).Status.Conditions, agentsv1beta1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, `NetworkPolicy "wide"`) || !strings.Contains(ready.Message, "169.254.169.254") {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
	if e.Exists(boxName, &corev1.Pod{}) {
		t.Fatal("the Pod was made")
	}
	if !e.Exists(isolation.FloorName, &networkingv1.NetworkPolicy{}) {
		t.Error("the floor is not there, by which the apiserver knows that the namespace has Sandboxes")
	}
	policy := &networkingv1.NetworkPolicy{}
	e.Get("wide", policy)
	e.Delete(policy)
	e.appears(boxName, &corev1.Pod{})

	e.Create(wide())
	e.edit(func(s *agentsv1beta1.Sandbox) { s.Labels = map[string]string{"touched": "true"} })
	if _, err := e.reconciler.Reconcile(t.Context(), e.request(boxName)); err != nil {
		t.Errorf("a pass over one that runs: %v", err)
	}
	if !e.Exists(boxName, &corev1.Pod{}) {
		t.Error("the Pod that ran is gone")
	}
}

func TestATierMayOnlyReportWhatReopens(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, withCeiling(config.ReopenedReport))
	e.Create(wide())
	e.Create(makeSandbox())
	e.appears(boxName, &corev1.Pod{})
}
