// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

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
