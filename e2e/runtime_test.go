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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// A tenant who asks for gVisor runs on gVisor's kernel, not on the node's.
func TestTenantRunsUnderGVisor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "runtimeClassName: gvisor", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	cluster.EventuallyPrints(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace"}, "gvisor", "dmesg")
}

// What the kernel of a node would do, gVisor's does not: it is another kernel with fewer
// system calls. Files, exec, suspend and resume work under it.
func TestTenantWorksUnderGVisor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns, trusting := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t, keys.Tier, "trusted")
	withFiles := strings.NewReplacer("python:3.12-slim\n", "python:3.12-slim\n          volumeMounts: [{name: files, mountPath: /files}]\n").
		Replace(sandboxWith("workspace", "runtimeClassName: gvisor\nterminationGracePeriodSeconds: 1", "")) +
		"  volumeClaimTemplates: [{metadata: {name: files}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}]\n"
	cluster.MustApply(ctx, t, ns, withFiles)
	cluster.MustApply(ctx, t, trusting, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	cluster.WaitReady(ctx, t, trusting, "workspace")

	for what, question := range map[string]string{
		"the kernel": "import os; print(os.uname().release, os.uname().version)",
		// 425 is io_uring_setup, on every architecture.
		"a system call": "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(425, 1, 0), ctypes.get_errno())",
	} {
		under, beside := cluster.MustExec(ctx, t, ns, "workspace", "python3", "-c", question), cluster.MustExec(ctx, t, trusting, "workspace", "python3", "-c", question)
		if under == beside {
			t.Errorf("%s answers %q under gVisor as on the node", what, strings.TrimSpace(under))
		}
	}

	cluster.MustExec(ctx, t, ns, "workspace", "sh", "-c", "echo kept > /files/file")
	for _, mode := range []string{"Suspended", "Running"} {
		cluster.MustApply(ctx, t, ns, withFiles+"  operatingMode: "+mode+"\n")
		if mode == "Suspended" {
			kit.Eventually(ctx, t, "the Pod is gone", func(ctx context.Context) error {
				err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "workspace"}, &corev1.Pod{})
				if err == nil {
					return errors.New("it is there")
				}
				return client.IgnoreNotFound(err)
			})
		}
	}
	cluster.WaitReady(ctx, t, ns, "workspace")
	// The shim may lose the output of an exec in the first moments of a container.
	kit.Eventually(ctx, t, "the file is read after suspend and resume", func(context.Context) error {
		if got := cluster.MustExec(ctx, t, ns, "workspace", "cat", "/files/file"); strings.TrimSpace(got) != "kept" {
			return fmt.Errorf("it holds %q, want %q", got, "kept")
		}
		return nil
	})
}

// A RuntimeClass that the cluster does not have is warned of at apply, with those
// that it has, and the Sandbox says why it does not start.
func TestTenantNamesAnUnknownRuntimeClass(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	_, warnings, err := cluster.Apply(ctx, ns, sandboxWith("workspace", "runtimeClassName: gvizor", ""))
	if err != nil {
		t.Fatalf("a RuntimeClass may be made later, but the Sandbox was refused: %v", err)
	}
	if all := strings.Join(warnings, "\n"); !strings.Contains(all, "spec.podTemplate.spec.runtimeClassName") ||
		!strings.Contains(all, "gvizor") || !strings.Contains(all, "gvisor") {
		t.Errorf("the warnings do not name the field, the value and the classes that exist:\n%s", all)
	}
	cluster.WaitReadyMessage(ctx, t, ns, "workspace", "gvizor", "not found")
}
