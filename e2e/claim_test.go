// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// emptyPool never has a Sandbox waiting, so that a claim gets one of its own.
const emptyPool = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 0, sandboxTemplateRef: {name: python}}
`

// asTemplate makes a template of a Sandbox.
func asTemplate(sandbox string) string {
	return strings.NewReplacer("agents.x-k8s.io/v1beta1", "extensions.agents.x-k8s.io/v1beta1", "kind: Sandbox", "kind: SandboxTemplate").Replace(sandbox)
}

// A tenant claims a Sandbox that waits in a pool, works in it, and gives it back. The
// pool fills up again.
func TestTenantClaimsASandboxFromAPool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	for manifest := range strings.SplitSeq(kit.Readme(t, "manifest: pool"), "\n---\n") {
		cluster.MustApply(ctx, t, ns, manifest)
	}
	waiting := waitForPool(ctx, t, ns)

	tenant := cluster.Tenant(ctx, t, ns)
	tenant.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	bound := waitForClaim(ctx, t, ns)
	if bound.Status.SandboxStatus.Name != waiting {
		t.Errorf("the claim got Sandbox %q, want %q, which waited for it", bound.Status.SandboxStatus.Name, waiting)
	}
	if len(bound.Status.SandboxStatus.PodIPs) == 0 {
		t.Error("the claim's status has no address")
	}
	tenant.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: waiting}, "42", "python3", "-c", "print(6*7)")
	if label := cluster.PodOf(ctx, t, ns, waiting).Labels[keys.ClaimUID]; label != string(bound.UID) {
		t.Errorf("label %s of the Pod is %q, want the claim's UID %q", keys.ClaimUID, label, bound.UID)
	}
	if next := waitForPool(ctx, t, ns); next == waiting {
		t.Error("the pool still counts the Sandbox that it gave away")
	}
	if err := tenant.Delete(ctx, bound); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the claimed Sandbox is gone", func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: waiting}, &agentsv1beta1.Sandbox{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it can be read: %w", err)
	})
}

// A pool is scaled like a Deployment, and the Pod of a Sandbox that waits in it is killed:
// another one takes its place, and the pool is whole again.
func TestPoolIsScaledAndLosesAPod(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, asTemplate(sandboxWith("python", "terminationGracePeriodSeconds: 1", "")))
	cluster.MustApply(ctx, t, ns, emptyPool)
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pool"}}
	for _, replicas := range []int32{2, 1} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if err := cluster.SubResource("scale").Update(ctx, pool, client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		waitForMembers(ctx, t, ns, replicas)
	}
	waiting := waitForPool(ctx, t, ns)
	first := cluster.PodOf(ctx, t, ns, waiting)
	if err := cluster.Delete(ctx, first, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	waitForOtherPod(ctx, t, ns, waiting, first.UID)
	cluster.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: waiting}, "42", "python3", "-c", "print(6*7)")
	waitForMembers(ctx, t, ns, 1)
	if now := waitForPool(ctx, t, ns); now != waiting {
		t.Errorf("Sandbox %q waits in the pool, want %q, which only lost its Pod", now, waiting)
	}
}

// In the tier restricted a tenant gets a Sandbox by a claim, isolated from all but the
// cluster's DNS.
func TestTenantOfTheRestrictedTierClaims(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "restricted")
	cluster.MustApply(ctx, t, ns, asTemplate(strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, `["/bin/probe", "sleep"]`).
		Replace(sandboxWith("python", "terminationGracePeriodSeconds: 1\nsecurityContext: {runAsNonRoot: true, runAsUser: 1000}", ""))))
	cluster.MustApply(ctx, t, ns, emptyPool)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	bound := waitForClaim(ctx, t, ns)
	name := bound.Status.SandboxStatus.Name
	if code := probe(ctx, t, ns, name, publicAddress); code != refused && code != timedOut {
		t.Errorf("a connection to the internet ended with %d, want it blocked", code)
	}
	if out, code := cluster.Ask(ctx, t, client.ObjectKey{Namespace: ns, Name: name}, "/bin/probe", "dns", "kubernetes.default.svc.cluster.local"); code != 0 {
		t.Errorf("the Sandbox cannot resolve names: %d, %s", code, out)
	}
}

// waitForMembers waits until there are as many Sandboxes in the pool as it asks for, and its
// scale and status say that all of them are Ready.
func waitForMembers(ctx context.Context, t *testing.T, namespace string, want int32) {
	t.Helper()
	kit.Eventually(ctx, t, fmt.Sprintf("the pool has %d Sandboxes ready", want), func(ctx context.Context) error {
		var list agentsv1beta1.SandboxList
		pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pool"}}
		var scale autoscalingv1.Scale
		if err := errors.Join(
			cluster.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{keys.WarmPoolSandbox}),
			cluster.Get(ctx, client.ObjectKeyFromObject(pool), pool),
			cluster.SubResource("scale").Get(ctx, pool, &scale),
		); err != nil {
			return err
		}
		if len(list.Items) != int(want) || pool.Status.ReadyReplicas != want || scale.Status.Replicas != want {
			return fmt.Errorf("there are %d, its status says %d of %d are Ready, and its scale %d",
				len(list.Items), pool.Status.ReadyReplicas, pool.Status.Replicas, scale.Status.Replicas)
		}
		return nil
	})
}

// waitForPool waits until the pool has its Sandbox ready and returns its name.
func waitForPool(ctx context.Context, t *testing.T, namespace string) string {
	t.Helper()
	name := ""
	kit.Eventually(ctx, t, "the pool has a Sandbox ready", func(ctx context.Context) error {
		var list agentsv1beta1.SandboxList
		if err := cluster.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{keys.WarmPoolSandbox}); err != nil {
			return err
		}
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, agentsv1beta1.ConditionReady) {
				name = list.Items[i].Name
				return nil
			}
		}
		return fmt.Errorf("none of its %d Sandboxes is Ready", len(list.Items))
	})
	return name
}

// waitForClaim waits until the README's claim is Ready and returns it.
func waitForClaim(ctx context.Context, t *testing.T, namespace string) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	return waitForClaimNamed(ctx, t, namespace, "task")
}

func waitForClaimNamed(ctx context.Context, t *testing.T, namespace, name string) *extensionsv1beta1.SandboxClaim {
	t.Helper()
	found := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	kit.Eventually(ctx, t, "the claim "+name+" is Ready", func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(found.Status.Conditions, "Ready"); ready == nil {
			return errors.New("it has no Ready condition yet")
		} else if ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	return found
}
