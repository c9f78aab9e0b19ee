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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// taskTemplate runs until somebody says that it is done. What it needs, a claim may bring.
const taskTemplate = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: python}
spec:
  envVarsInjectionPolicy: Allowed
  volumeClaimTemplatesPolicy: Overrides
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  podTemplate:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - name: workspace
          image: python:3.12-slim
          command: ["sh", "-c", "until test -e /data/done; do sleep 1; done"]
          volumeMounts: [{name: data, mountPath: /data}]
`

// taskClaim brings a variable and a larger volume, and goes a moment after its task has ended.
const taskClaim = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: task}
spec:
  warmPoolRef: {name: pool}
  env: [{name: ANSWER, value: forty-two}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
  lifecycle: {ttlSecondsAfterFinished: 3, shutdownPolicy: DeleteForeground}
`

// A tenant's task gets what its claim brings, ends by itself, and leaves nothing behind.
func TestTenantRunsATaskToItsEnd(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, taskTemplate)
	cluster.MustApply(ctx, t, ns, emptyPool)
	tenant := cluster.Tenant(ctx, t, ns)
	tenant.MustApply(ctx, t, ns, taskClaim)
	name := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
	key := client.ObjectKey{Namespace: ns, Name: name}
	tenant.EventuallyPrints(ctx, t, key, "forty-two", "sh", "-c", "echo $ANSWER")
	volume := &corev1.PersistentVolumeClaim{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "data-" + name}, volume); err != nil {
		t.Fatal(err)
	}
	if got := volume.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("the volume has %s, want the claim's 2Gi", got)
	}
	out, code, err := tenant.Exec(ctx, ns, name, "touch", "/data/done")
	t.Logf("told to be done: %q, %d, %v", out, code, err) // the Pod may end before it answers
	for _, object := range []client.Object{&extensionsv1beta1.SandboxClaim{}, &agentsv1beta1.Sandbox{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		waitUntilNoneIsLeft(ctx, t, ns, object, name)
	}
}

// waitUntilNoneIsLeft waits until the claim "task", or what belongs to its Sandbox, is gone.
func waitUntilNoneIsLeft(ctx context.Context, t *testing.T, namespace string, like client.Object, sandbox string) {
	t.Helper()
	name := sandbox
	switch like.(type) {
	case *extensionsv1beta1.SandboxClaim:
		name = "task"
	case *corev1.PersistentVolumeClaim:
		name = "data-" + sandbox
	}
	kit.Eventually(ctx, t, fmt.Sprintf("%T %s is gone", like, name), func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, like)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it can be read: %w", err)
	})
}

// The Sandbox of a claim is deleted under it: the claim says so, takes no other, and a new
// claim gets one.
func TestTenantLosesTheSandboxOfHisClaim(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	for manifest := range strings.SplitSeq(kit.Readme(t, "manifest: pool"), "\n---\n") {
		cluster.MustApply(ctx, t, ns, manifest)
	}
	waitForPool(ctx, t, ns)
	claim := kit.Readme(t, "manifest: claim")
	cluster.MustApply(ctx, t, ns, claim)
	bound := waitForClaim(ctx, t, ns)
	lost := &agentsv1beta1.Sandbox{}
	lost.Namespace, lost.Name = ns, bound.Status.SandboxStatus.Name
	if err := cluster.Delete(ctx, lost); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the claim says that its Sandbox is missing", func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(bound.Status.Conditions, agentsv1beta1.ConditionReady)
		if ready == nil || ready.Reason != "SandboxMissing" || bound.Status.SandboxStatus.Name != "" {
			return fmt.Errorf("it says %+v and names %q", ready, bound.Status.SandboxStatus.Name)
		}
		return nil
	})
	cluster.MustApply(ctx, t, ns, strings.ReplaceAll(claim, "name: task", "name: next"))
	if next := waitForClaimNamed(ctx, t, ns, "next").Status.SandboxStatus.Name; next == lost.Name {
		t.Errorf("the next claim names %q, which is gone", next)
	}
}

// Who changes a template and then claims gets what the template says now. The pool replaces
// what it made before.
func TestTenantClaimsWhatTheTemplateSaysNow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	template := func(edition string) string {
		return asTemplate(sandboxWith("python", "terminationGracePeriodSeconds: 1", "env: [{name: EDITION, value: "+edition+"}]"))
	}
	cluster.MustApply(ctx, t, ns, template("first"))
	cluster.MustApply(ctx, t, ns, strings.Replace(emptyPool, "replicas: 0,", "replicas: 1, updateStrategy: {type: Recreate},", 1))
	before := waitForPool(ctx, t, ns)
	cluster.MustApply(ctx, t, ns, template("second"))
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	name := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
	cluster.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: name}, "second", "sh", "-c", "echo $EDITION")
	waitForMembers(ctx, t, ns, 1)
	if now := waitForPool(ctx, t, ns); now == before {
		t.Errorf("Sandbox %q waits in the pool as before the change", now)
	}
}
