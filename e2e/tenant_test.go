// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// A tenant with the chart's roles, and nothing else, makes a Sandbox, works in it and
// reads what it printed.
func TestTenantNeedsOnlyTheRolesOfTheChart(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	tenant := cluster.Tenant(ctx, t, ns)
	tenant.MustApply(ctx, t, ns, strings.Replace(sandboxWith("workspace", "", ""), "sleep infinity", "echo hello; sleep infinity", 1))
	tenant.WaitReady(ctx, t, ns, "workspace")
	tenant.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace"}, "works", "echo", "works")
	kit.Eventually(ctx, t, "the log of the Sandbox can be read", func(ctx context.Context) error {
		if out, err := tenant.Logs(ctx, ns, "workspace"); err != nil || strings.TrimSpace(out) != "hello" {
			return fmt.Errorf("log %q: %w", out, err)
		}
		return nil
	})
}

// The roles let nobody go round the platform: no Pod beside the Sandboxes, no
// NetworkPolicy, no other tier.
func TestTenantCannotGoRoundThePlatform(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	tenant := cluster.Tenant(ctx, t, ns)
	meta := metav1.ObjectMeta{Namespace: ns, Name: "round"}
	for name, object := range map[string]client.Object{
		"a Pod": &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: probeImage}}}},
		"a NetworkPolicy": &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		}},
		"a Secret": &corev1.Secret{ObjectMeta: meta},
	} {
		if err := tenant.Create(ctx, object); !apierrors.IsForbidden(err) {
			t.Errorf("the tenant creates %s: %v", name, err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+keys.Tier+`":"trusted"}}}`))
	if err := tenant.Patch(ctx, namespace, patch); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant changes the tier of the namespace: %v", err)
	}
}

// A namespace of the tier restricted takes claims only, and says so.
func TestRestrictedTierTakesClaimsOnly(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "restricted")
	cluster.MustRefuse(ctx, t, ns, sandboxWith("bare", "", "")).MustName(t, "restricted", "SandboxClaim")
}

// In a namespace of the tier trusted, nothing is dropped and no runtime is chosen.
func TestTrustedTierLeavesTheRuntimeToTheTenant(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "trusted")
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	pod := cluster.PodOf(ctx, t, ns, "workspace")
	if pod.Spec.RuntimeClassName != nil {
		t.Errorf("the Pod's RuntimeClass is %q, want none", *pod.Spec.RuntimeClassName)
	}
	if c := pod.Spec.Containers[0].SecurityContext.Capabilities; c != nil && len(c.Drop) > 0 {
		t.Errorf("the container drops %v, want nothing", c.Drop)
	}
}
