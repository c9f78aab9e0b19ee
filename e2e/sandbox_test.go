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
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

const workspace = "agent-workspace"

// A tenant suspends a Sandbox over night and finds the files in the morning.
func TestTenantSuspendsASandboxAndResumesWithTheFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: first"))
	cluster.WaitReady(ctx, t, ns, workspace)
	keep(ctx, t, ns)
	before := cluster.PodOf(ctx, t, ns, workspace)

	edit(ctx, t, ns, func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended })
	suspended := waitCondition(ctx, t, ns, agentsv1beta1.ConditionSuspended, "True/PodTerminated")
	waitGone(ctx, t, ns, &corev1.Pod{})
	if len(suspended.Status.PodIPs) != 0 || suspended.Status.Service != workspace {
		t.Errorf("status of the suspended Sandbox: %+v", suspended.Status)
	}

	edit(ctx, t, ns, func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeRunning })
	waitForOtherPod(ctx, t, ns, workspace, before.UID)
	cluster.WaitReady(ctx, t, ns, workspace)
	waitKept(ctx, t, ns)
}

// The volumes that a tenant wants to keep are there for the next Sandbox of the name, if
// it is the same tenant's.
func TestRetainedFilesAreTheirCreatorsOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	tenant := cluster.Tenant(ctx, t, ns)
	retaining := strings.Replace(kit.Readme(t, "manifest: first"), "metadata: {name: agent-workspace}",
		"metadata: {name: agent-workspace, annotations: {platform.agents.x-k8s.io/volume-retention: Retain}}", 1)
	again := func(as *kit.Cluster) {
		kit.Eventually(ctx, t, "the Sandbox before is gone", func(ctx context.Context) error {
			err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: workspace}, &corev1.Pod{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
		as.MustApply(ctx, t, ns, retaining)
	}
	drop := func() {
		if err := cluster.Delete(ctx, &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: workspace}}); err != nil {
			t.Fatal(err)
		}
	}
	tenant.MustApply(ctx, t, ns, retaining)
	cluster.WaitReady(ctx, t, ns, workspace)
	cluster.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: workspace}, "kept", "sh", "-c", "echo kept > /workspace/file && cat /workspace/file")

	drop()
	again(cluster)
	cluster.WaitReadyMessage(ctx, t, ns, workspace, `"workspace-volume-agent-workspace" was retained for the creator of an earlier sandbox`)
	drop()
	again(tenant)
	cluster.WaitReady(ctx, t, ns, workspace)
	waitKept(ctx, t, ns)
}

// A Sandbox ends at its time, keeps its volume, and lives on when the time is cleared.
func TestSandboxEndsAtItsTimeAndCanBeRevived(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: first"))
	cluster.WaitReady(ctx, t, ns, workspace)
	keep(ctx, t, ns)

	edit(ctx, t, ns, func(s *agentsv1beta1.Sandbox) {
		s.Spec.ShutdownTime = &metav1.Time{Time: clock.RealClock{}.Now().Add(3 * time.Second)}
	})
	waitCondition(ctx, t, ns, agentsv1beta1.ConditionReady, "False/SandboxExpired")
	waitGone(ctx, t, ns, &corev1.Pod{})
	waitGone(ctx, t, ns, &corev1.Service{})
	claim := &corev1.PersistentVolumeClaim{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "workspace-volume-" + workspace}, claim); err != nil || claim.DeletionTimestamp != nil {
		t.Errorf("the volume went with the Pod: deleted at %v, %v", claim.DeletionTimestamp, err)
	}

	edit(ctx, t, ns, func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = nil })
	cluster.WaitReady(ctx, t, ns, workspace)
	waitKept(ctx, t, ns)
}

// A neighbour finds a Sandbox that offers a Service by its name.
func TestNeighbourReachesASandboxByTheNameOfItsService(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	manifest := strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, `["/bin/probe", "serve", ":8080"]`,
		"podTemplate:", "service: true\n  podTemplate:").Replace(sandboxWith(workspace, "", "ports: [{name: http, containerPort: 8080}]"))
	cluster.MustApply(ctx, t, ns, manifest)
	sandbox := cluster.WaitReady(ctx, t, ns, workspace)
	startPod(ctx, t, ns, "neighbour", "sleep")

	out, code := cluster.Ask(ctx, t, client.ObjectKey{Namespace: ns, Name: "neighbour"}, "/bin/probe", "dns", sandbox.Status.ServiceFQDN)
	if code != 0 || !strings.Contains(out, sandbox.Status.PodIPs[0]) {
		t.Errorf("the name %s stands for %q, want %s", sandbox.Status.ServiceFQDN, out, sandbox.Status.PodIPs[0])
	}
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "neighbour"}, questionOf(sandbox.Status.ServiceFQDN+":8080"), true)
}

// A tenant whose quota is used up reads so in the Sandbox, word for word, and gets it
// as soon as there is room.
func TestTenantReadsThatTheQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	if err := cluster.Create(ctx, quota); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the quota is in force", func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	cluster.MustApply(ctx, t, ns, sandboxWith(workspace, "", ""))
	cluster.WaitReadyMessage(ctx, t, ns, workspace,
		`pods "agent-workspace" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0`)
	kit.Eventually(ctx, t, "an Event names the reason", func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := cluster.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Reason == "QuotaExceeded" && list.Items[i].Regarding.Name == workspace {
				return nil
			}
		}
		return fmt.Errorf("none of %d does", len(list.Items))
	})
	if err := cluster.Delete(ctx, quota); err != nil {
		t.Fatal(err)
	}
	cluster.WaitReady(ctx, t, ns, workspace)
}

// keep writes the file that is to be kept.
func keep(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	cluster.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: namespace, Name: workspace}, "kept",
		"sh", "-c", "echo kept > /workspace/file && cat /workspace/file")
}

// waitKept waits until the file is read back. What a command prints that ends at once may
// get lost on its way, so it is asked again.
func waitKept(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	kit.Eventually(ctx, t, "the file has what was written before", func(context.Context) error {
		got, code, err := cluster.Exec(ctx, namespace, workspace, "cat", "/workspace/file")
		if err != nil || code != 0 || strings.TrimSpace(got) != "kept" {
			return fmt.Errorf("it holds %q (exit code %d, error %w), want %q", got, code, err, "kept")
		}
		return nil
	})
}

// edit changes the Sandbox of a story as its tenant does.
func edit(ctx context.Context, t *testing.T, namespace string, change func(*agentsv1beta1.Sandbox)) {
	t.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workspace}, sandbox); err != nil {
		t.Fatal(err)
	}
	before := sandbox.DeepCopy()
	change(sandbox)
	if err := cluster.Patch(ctx, sandbox, client.MergeFrom(before)); err != nil {
		t.Fatalf("edit the Sandbox: %v", err)
	}
}

// waitCondition waits until a condition has the status and the reason.
func waitCondition(ctx context.Context, t *testing.T, namespace, kind, want string) *agentsv1beta1.Sandbox {
	t.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	kit.Eventually(ctx, t, kind+" is "+want, func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workspace}, sandbox); err != nil {
			return err
		}
		c := meta.FindStatusCondition(sandbox.Status.Conditions, kind)
		if c == nil || string(c.Status)+"/"+c.Reason != want {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	return sandbox
}

// waitGone waits until the Sandbox has no object of that kind.
func waitGone(ctx context.Context, t *testing.T, namespace string, like client.Object) {
	t.Helper()
	kit.Eventually(ctx, t, fmt.Sprintf("the %T is gone", like), func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workspace}, like)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}
