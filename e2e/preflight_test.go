// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform engineer asks whether this cluster isolates Sandboxes, and reads the
// answer in words. Nothing that was made for it stays but the Pod with the answer.
func TestPlatformEngineerAsksWhetherTheClusterIsolates(t *testing.T) {
	ctx := t.Context()
	if err := cluster.Helm("agent-sandbox", kit.ReleaseNamespace).Test(); err != nil {
		t.Errorf("helm test: %v", err)
	}
	said, err := cluster.Logs(ctx, kit.ReleaseNamespace, "agent-sandbox-preflight")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"NetworkPolicy over IPv4: enforced.", "NetworkPolicy over IPv6: enforced.", "Metadata at [fd00:ec2::254]:80: reachable from ordinary Pods; a policy closes it.",
		"RuntimeClass gvisor: usable.", "Metadata at 169.254.169.254:80: reachable from ordinary Pods; a policy closes it.",
		"Tier restricted: its Sandboxes run under RuntimeClass gvisor.",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the preflight does not say %q:\n%s", part, said)
		}
	}
	var policies networkingv1.NetworkPolicyList
	if err := cluster.List(ctx, &policies, client.InNamespace(kit.ReleaseNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range policies.Items {
		if strings.HasPrefix(policies.Items[i].Name, "preflight-") {
			t.Errorf("NetworkPolicy %s is still there", policies.Items[i].Name)
		}
	}
}

// Where the network enforces no NetworkPolicy at all, the engineer hears so in the same
// words, for each family of addresses, and the test of the release fails.
func TestPlatformEngineerHearsThatNothingIsEnforced(t *testing.T) {
	ctx := t.Context()
	kit.Unenforced(ctx, t)
	if err := cluster.Helm("agent-sandbox", kit.ReleaseNamespace).Test(); err == nil {
		t.Error("helm test passes")
	}
	said, err := cluster.Logs(ctx, kit.ReleaseNamespace, "agent-sandbox-preflight")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"NetworkPolicy over IPv4: NOT enforced. A Pod that a policy denies everything reached another Pod: install a network that enforces",
		"NetworkPolicy over IPv6: NOT enforced.",
		"Metadata at 169.254.169.254:80: reachable even from a Pod that a policy denies everything. Close it on the nodes.",
		"the cluster is not fit for Sandboxes: 2 of the findings above must be mended",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the preflight does not say %q:\n%s", part, said)
		}
	}
	pod := &corev1.Pod{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-preflight"}, pod); err != nil {
		t.Fatal(err)
	}
	if ended := pod.Status.ContainerStatuses[0].State.Terminated; ended == nil || ended.ExitCode != 1 {
		t.Errorf("the preflight ended as %+v, want exit code 1", ended)
	}
}
