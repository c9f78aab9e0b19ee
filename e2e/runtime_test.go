// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// A tenant who asks for gVisor runs on gVisor's kernel, not on the node's.
func TestTenantRunsUnderGVisor(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "runtimeClassName: gvisor", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	if out := cluster.MustExec(ctx, t, ns, "workspace", "dmesg"); !strings.Contains(strings.ToLower(out), "gvisor") {
		t.Errorf("dmesg in the Sandbox is not gVisor's:\n%s", out)
	}
}

// A RuntimeClass that the cluster does not have is warned of at apply, with those
// that it has, and the Sandbox says why it does not start.
func TestTenantNamesAnUnknownRuntimeClass(t *testing.T) {
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
