// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// A tenant applies a first Sandbox, works in it, and finds the files again after
// the Pod was lost.
func TestTenantAppliesAFirstSandbox(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: first"))
	sandbox := cluster.WaitReady(ctx, t, ns, "agent-workspace")

	if got := sandbox.Annotations[keys.PodName]; got != "agent-workspace" {
		t.Errorf("annotation %s = %q, want the name of the Pod", keys.PodName, got)
	}
	if want := "agent-workspace." + ns + ".svc.cluster.local"; sandbox.Status.ServiceFQDN != want {
		t.Errorf("status.serviceFQDN = %q, want %q", sandbox.Status.ServiceFQDN, want)
	}
	var claim corev1.PersistentVolumeClaim
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "workspace-volume-agent-workspace"}, &claim); err != nil {
		t.Fatal(err)
	}
	if claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the volume claim is %s, want Bound", claim.Status.Phase)
	}

	workspace := client.ObjectKey{Namespace: ns, Name: "agent-workspace"}
	keep(ctx, t, ns)
	first := cluster.PodOf(ctx, t, ns, "agent-workspace")
	if err := cluster.Delete(ctx, first); err != nil {
		t.Fatal(err)
	}
	waitForOtherPod(ctx, t, ns, "agent-workspace", first.UID)
	waitKept(ctx, t, ns)
	cluster.EventuallyPrints(ctx, t, workspace, "42", "python3", "-c", "print(6*7)")
}

// What the tenant left open and what matters for isolation is set at admission, and
// an annotation says so.
func TestTenantsSandboxIsHardened(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	stored := cluster.MustApply(ctx, t, ns, strings.ReplaceAll(kit.Readme(t, "manifest: first"), "automountServiceAccountToken: false", "terminationGracePeriodSeconds: 1"))
	cluster.WaitReady(ctx, t, ns, "agent-workspace")
	pod := cluster.PodOf(ctx, t, ns, "agent-workspace")

	if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
		t.Error("the Pod mounts a ServiceAccount token")
	}
	if c := pod.Spec.RuntimeClassName; c == nil || *c != "gvisor" {
		t.Errorf("the Pod's RuntimeClass is %v, want gvisor, the first that the tier prefers and the cluster has", c)
	}
	if s := pod.Spec.SecurityContext; s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the Pod's seccomp profile is not RuntimeDefault: %+v", s)
	}
	if e := pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation; e == nil || *e {
		t.Error("the container may escalate its privileges")
	}
	defaulted := stored.GetAnnotations()[keys.Defaulted]
	for _, name := range []string{"automountServiceAccountToken", "runtimeClassName", "seccompProfile", "allowPrivilegeEscalation"} {
		if !strings.Contains(defaulted, name) {
			t.Errorf("annotation %s = %q does not name %s", keys.Defaulted, defaulted, name)
		}
	}
	workspace := client.ObjectKey{Namespace: ns, Name: "agent-workspace"}
	if out, code := cluster.Ask(ctx, t, workspace, "ls", "/var/run/secrets/kubernetes.io"); code == 0 {
		t.Errorf("there is a token in the Sandbox: %q", out)
	}
}

// Applying the same manifest twice changes nothing.
func TestTenantAppliesTheSameSandboxTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: first"))
	before := cluster.WaitReady(ctx, t, ns, "agent-workspace")
	after := cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: first"))
	if after.GetGeneration() != before.Generation {
		t.Errorf("the second apply moved the generation from %d to %d", before.Generation, after.GetGeneration())
	}
}

func waitForOtherPod(ctx context.Context, t *testing.T, namespace, name string, old types.UID) {
	t.Helper()
	kit.Eventually(ctx, t, "another Pod of Sandbox "+name+" is Ready", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
			return err
		}
		if pod.UID == old {
			return errors.New("the old Pod is still there")
		}
		return kit.PodReady(pod)
	})
}
