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

// gVisor is another kernel than the node's, with fewer system calls. Files, exec, suspend
// and resume work under it.
func TestTenantWorksUnderGVisor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	withFiles := strings.NewReplacer("python:3.12-slim\n", "python:3.12-slim\n          volumeMounts: [{name: files, mountPath: /files}]\n").
		Replace(sandboxWith("workspace", "runtimeClassName: gvisor\nterminationGracePeriodSeconds: 1", "")) +
		"  volumeClaimTemplates: [{metadata: {name: files}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}]\n"
	cluster.MustApply(ctx, t, ns, withFiles)
	cluster.WaitReady(ctx, t, ns, "workspace")
	workspace := client.ObjectKey{Namespace: ns, Name: "workspace"}
	mustBeAnotherKernel(ctx, t, workspace)

	cluster.EventuallyPrints(ctx, t, workspace, "kept", "sh", "-c", "echo kept > /files/file && cat /files/file")
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
	cluster.EventuallyPrints(ctx, t, workspace, "kept", "cat", "/files/file")
}

// noSuchCall is what a kernel answers to a system call that it does not have (ENOSYS on
// Linux). A filter that forbids a call answers otherwise.
const noSuchCall = "38"

// mustBeAnotherKernel compares a Pod under gVisor with an ordinary one on the node's own
// kernel without any filter of system calls, so that what differs is the kernel and no
// filter before it.
func mustBeAnotherKernel(ctx context.Context, t *testing.T, sandbox client.ObjectKey) {
	t.Helper()
	beside := ordinaryPod(sandbox.Namespace, "unfiltered")
	beside.Spec.Containers[0].Image, beside.Spec.Containers[0].Command = "python:3.12-slim", []string{"sleep", "infinity"}
	beside.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	mustCreate(ctx, t, beside)
	waitPod(ctx, t, beside)
	node := client.ObjectKeyFromObject(beside)
	answer := func(of client.ObjectKey, python string) string {
		out, code := cluster.Ask(ctx, t, of, "python3", "-c", python)
		if code != 0 {
			t.Fatalf("%q in Pod %s ended with %d:\n%s", python, of.Name, code, out)
		}
		return strings.TrimSpace(out)
	}
	if got := answer(node, "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')])"); got != "['0']" {
		t.Fatalf("a filter of system calls is before the ordinary Pod (%s), so the story proves nothing", got)
	}
	const version = "print(open('/proc/version').read())"
	if under, on := answer(sandbox, version), answer(node, version); under == on {
		t.Errorf("the kernel is the node's: %s", under)
	}
	// Calls of one number on every architecture, with arguments that no kernel takes.
	for call, number := range map[string]int{"io_uring_setup": 425, "landlock_create_ruleset": 444} {
		python := fmt.Sprintf("import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(%d, 1, 0, 0, 0); print(ctypes.get_errno())", number)
		if on := answer(node, python); on == noSuchCall {
			t.Errorf("the node's kernel has no %s, so that nothing is compared", call)
		}
		if under := answer(sandbox, python); under != noSuchCall {
			t.Errorf("%s answers %s under gVisor, want %s: it has no such call", call, under, noSuchCall)
		}
	}
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
