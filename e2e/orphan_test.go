// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The template of a running Sandbox is deleted: code in it that tries all the time still
// reaches nothing that was closed, and what was open stays open.
func TestDeletedTemplateLeavesItsSandboxesIsolated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	neighbour := startPod(ctx, t, ns, "neighbour", "serve", ":8080").Status.PodIP + ":8080"
	closed := []string{metadataAddress, neighbour}
	startPod(ctx, t, ns, "control", append([]string{"loop"}, closed...)...)
	for _, target := range closed {
		waitLog(ctx, t, ns, "control", "reached "+target+" ")
	}
	cluster.MustApply(ctx, t, ns, asTemplate(probing("python", "public", looping(closed))))
	cluster.MustApply(ctx, t, ns, emptyPool)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	sandbox := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
	public := question{command: "tcp", target: publicAddress}
	mustBe(t, ask(ctx, t, ns, sandbox, public), true)

	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "python"}}
	if err := cluster.Delete(ctx, template); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the template is gone", func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(template), template)
		if err == nil {
			return errors.New("it can be read")
		}
		return client.IgnoreNotFound(err)
	})
	mustBe(t, ask(ctx, t, ns, sandbox, public), true)
	for _, target := range closed {
		mustBe(t, ask(ctx, t, ns, sandbox, question{command: "tcp", target: target}), false)
		waitLog(ctx, t, ns, sandbox, "tried "+target+":")
	}
	if log := waitLog(ctx, t, ns, sandbox, "tried "); strings.Contains(log, "reached ") {
		t.Errorf("the Sandbox got through:\n%s", log)
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: isolation.TemplateName("python")}, policy); err != nil {
		t.Errorf("the policy of the template: %v", err)
	}
}

// A tenant who may write NetworkPolicies tries to take the profile's away and is refused;
// nothing opens. In a tier with a ceiling he opens nothing by one of his own either, and
// what stays below the ceiling he may add.
func TestTenantCannotOpenEgress(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	metadata := question{command: "tcp", target: metadataAddress}
	startPod(ctx, t, ns, "control", "sleep")
	if code := ask(ctx, t, ns, "control", metadata); code != connected {
		t.Fatalf("an ordinary Pod cannot reach the metadata service (exit code %d), so the story proves nothing", code)
	}
	cluster.MustApply(ctx, t, ns, probing("workspace", "public", `["/bin/probe", "sleep"]`))
	cluster.WaitReady(ctx, t, ns, "workspace")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: isolation.ProfileName("public")}}
	if err := tenantOf(ctx, t, ns).Delete(ctx, policy); !refusedBy(err, "managed-network-policy") {
		t.Errorf("deleting the profile's policy ended with %v, want it refused", err)
	}
	mustBe(t, ask(ctx, t, ns, "workspace", metadata), false)
	mustBe(t, ask(ctx, t, ns, "workspace", question{command: "tcp", target: publicAddress}), true)

	strict := cluster.Namespace(ctx, t, "platform.agents.x-k8s.io/tier", "restricted")
	tenant := tenantOf(ctx, t, strict)
	wide := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: strict, Name: "wide"}}
	wide.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	wide.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "203.0.113.0/24"}}}}}
	if err := tenant.Create(ctx, wide.DeepCopy()); !refusedBy(err, "egress-ceiling: spec.egress[0] (203.0.113.0/24)") {
		t.Errorf("a policy beyond the ceiling ended with %v, want it refused", err)
	}
	wide.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "platform.agents.x-k8s.io/sandbox", Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	if err := tenant.Create(ctx, wide); err != nil {
		t.Errorf("the same for Pods that are no Sandboxes: %v", err)
	}
}
