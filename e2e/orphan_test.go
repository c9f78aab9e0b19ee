// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The template of a running Sandbox is deleted: code in it that tries all the time still
// reaches nothing that was closed, and what was open stays open. So too in the Pod that
// takes its place, from the first moment on.
func TestDeletedTemplateLeavesItsSandboxesIsolated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	w := under("public", inside(ctx, t, ns))
	w.mustReach(ctx, t, ns)
	cluster.MustApply(ctx, t, ns, asTemplate(probing("python", "public", w.command(), "dnsPolicy: ClusterFirst")))
	cluster.MustApply(ctx, t, ns, emptyPool)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	sandbox := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name

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
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: sandbox}, questionOf(publicAddress), true)
	mustBe(t, ask(ctx, t, ns, sandbox, questionOf(metadataAddress)), false)
	w.mustHold(ctx, t, ns, sandbox)
	mustKeep(ctx, t, tenantOf(ctx, t, ns), ns, isolation.TemplateName("python"))

	first := cluster.PodOf(ctx, t, ns, sandbox)
	if err := cluster.Delete(ctx, first); err != nil {
		t.Fatal(err)
	}
	waitForOtherPod(ctx, t, ns, sandbox, first.UID)
	w.mustHold(ctx, t, ns, sandbox)
}

// A tenant who may write NetworkPolicies tries to take those of the Sandbox away, again
// and again, and is refused; nothing opens. In a tier with a ceiling he opens nothing by
// one of his own either, and what stays below the ceiling he may add.
func TestTenantCannotOpenEgress(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	w := under("public", inside(ctx, t, ns))
	w.mustReach(ctx, t, ns)
	cluster.MustApply(ctx, t, ns, probing("workspace", "public", w.command()))
	cluster.WaitReady(ctx, t, ns, "workspace")
	tenant := tenantOf(ctx, t, ns)
	for _, policy := range []string{isolation.ProfileName("public"), isolation.FloorName} {
		mustKeep(ctx, t, tenant, ns, policy)
	}
	mustBe(t, ask(ctx, t, ns, "workspace", questionOf(metadataAddress)), false)
	w.mustHold(ctx, t, ns, "workspace")

	strict := cluster.Namespace(ctx, t, "platform.agents.x-k8s.io/tier", "restricted")
	tenant = tenantOf(ctx, t, strict)
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
