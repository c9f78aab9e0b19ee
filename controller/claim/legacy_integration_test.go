// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// Early releases made a NetworkPolicy for each claim. Of those only the claim's own goes.
func TestThePolicyThatAnEarlyReleaseMadeForAClaimGoes(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.bound()
	e.stop()
	claim := e.claim("claim")
	policy := func(name string, owner client.Object) *networkingv1.NetworkPolicy {
		made := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if owner != nil {
			made.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(owner, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
			}
		}
		return made
	}
	// One that a claim before this one had, of the same name.
	earlier := claim.DeepCopy()
	earlier.Name, earlier.UID = "gone", "another-uid"
	e.Create(policy("claim-network-policy", claim), policy("claim-extra", claim), policy("template-network-policy", nil),
		policy("gone-network-policy", earlier))
	e.reconciler, e.stop = e.launch(false)
	e.Gone("claim-network-policy", &networkingv1.NetworkPolicy{})
	e.says(saysReady)
	for _, kept := range []string{"claim-extra", "template-network-policy", "gone-network-policy"} {
		e.Get(kept, &networkingv1.NetworkPolicy{})
	}
	if got := e.Writes()["delete networkpolicies"]; got != 1 {
		t.Errorf("%d policies were deleted, want 1", got)
	}
}
