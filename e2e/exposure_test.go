// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/reports"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Policies add up: a tenant's own for all Pods reopens what the Sandbox's profile closes.
// An Event on it, a metric and a finding of the audit say so and name it; one that opens
// nothing for Sandboxes has none.
func TestTenantsPolicyThatReopensIsTold(t *testing.T) {
	ctx := t.Context()
	t.Cleanup(reports.Install(t, cluster.Client))
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, probing("workspace", "none", `["/bin/probe", "sleep"]`))
	cluster.WaitReady(ctx, t, ns, "workspace")
	tenant := tenantOf(ctx, t, ns)
	policy := func(name string, selects map[string]string) *networkingv1.NetworkPolicy {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		policy.Spec.PodSelector.MatchLabels = selects
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		return policy
	}
	create := func(policy *networkingv1.NetworkPolicy) {
		if err := tenant.Create(ctx, policy); err != nil {
			t.Fatal(err)
		}
	}
	create(policy("harmless", map[string]string{"app": "web"}))
	create(policy("wide", nil))
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace"}, question{command: "tcp", target: publicAddress}, true) // so it is true
	waitReopens(ctx, t, ns, "wide")
	// What is told of this one comes after all that could be told of harmless.
	create(policy("wide-too", nil))
	waitReopens(ctx, t, ns, "wide", "wide-too")
	waitExposed(ctx, t, ns, "wide", "wide-too")
	waitAudited(ctx, t, ns, "wide", "wide-too")
	for _, name := range []string{"wide", "wide-too"} {
		if err := tenant.Delete(ctx, policy(name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	waitExposed(ctx, t, ns)
	waitAudited(ctx, t, ns)
}

// waitExposed waits until the metrics tell of one Pod that each of the policies opens
// egress for, and of no other policy of the namespace.
func waitExposed(ctx context.Context, t *testing.T, ns string, policies ...string) {
	t.Helper()
	want := map[string]float64{}
	for _, name := range policies {
		want[fmt.Sprintf("agent_sandbox_exposed_pods{direction=%q,namespace=%q,networkpolicy=%q}", "Egress", ns, name)] = 1
	}
	if len(policies) > 0 {
		want[fmt.Sprintf("agent_sandbox_policy_violations{enforcement=%q,namespace=%q,rule=%q,severity=%q}",
			engine.Audit, ns, "reopened-network", engine.High)] = float64(len(policies))
	}
	kit.Eventually(ctx, t, "metrics name the policies", func(ctx context.Context) error {
		told, err := cluster.Metrics(ctx, "controller")
		if err != nil {
			return err
		}
		maps.DeleteFunc(told, func(series string, _ float64) bool {
			about := strings.HasPrefix(series, "agent_sandbox_exposed_pods{") || strings.Contains(series, `rule="reopened-network"`)
			return !about || !strings.Contains(series, fmt.Sprintf("namespace=%q", ns))
		})
		if !maps.Equal(told, want) {
			return fmt.Errorf("they tell %v, want %v", told, want)
		}
		return nil
	})
}

// waitAudited waits until the reports of a namespace have one finding of the rule, about
// these policies and nothing else; or none where there are no policies.
func waitAudited(ctx context.Context, t *testing.T, ns string, policies ...string) {
	t.Helper()
	kit.Eventually(ctx, t, "the audit names the policies", func(ctx context.Context) error {
		var list reportsv1alpha1.ReportList
		if err := cluster.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		var told []string
		for i := range list.Items {
			for _, result := range list.Items[i].Results {
				if result.Policy != "reopened-network" {
					continue
				}
				for _, subject := range result.Subjects {
					told = append(told, subject.Name)
				}
			}
		}
		if slices.Sort(told); !slices.Equal(told, policies) {
			return fmt.Errorf("it names %q, want %q", told, policies)
		}
		return nil
	})
}

// waitReopens waits until one Event for each of the policies tells that it opens everything
// for the Sandbox workspace, and wants none of another policy.
func waitReopens(ctx context.Context, t *testing.T, ns string, policies ...string) {
	t.Helper()
	kit.Eventually(ctx, t, "Events name the policies", func(ctx context.Context) error {
		var list corev1.EventList
		if err := cluster.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		var told []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "ReopensSandbox" && strings.Contains(e.Message, "workspace") && strings.Contains(e.Message, "everything") {
				told = append(told, e.InvolvedObject.Name)
			} else if e.Reason == "ReopensSandbox" {
				told = append(told, e.InvolvedObject.Name+": "+e.Message)
			}
		}
		slices.Sort(told)
		if !slices.Equal(told, policies) {
			return fmt.Errorf("the Events are of %q, want %q", told, policies)
		}
		return nil
	})
}

// A policy that is older than the first Sandbox of its namespace opens more than the tier
// allows: the Sandbox says so and does not start, until somebody mends it.
func TestOlderPolicyKeepsASandboxFromStarting(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "restricted")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "wide"}}
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	if err := cluster.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	cluster.MustApply(ctx, t, ns, asTemplate(probing("python", "dns-only", `["/bin/probe", "sleep"]`, "securityContext: {runAsNonRoot: true, runAsUser: 1000}")))
	cluster.MustApply(ctx, t, ns, emptyPool)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	cluster.WaitReadyMessage(ctx, t, ns, "task", `NetworkPolicy "wide"`, "everything", "dns-only")
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "task"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Pod: %v, want none", err)
	}
	if err := cluster.Delete(ctx, policy); err != nil {
		t.Fatal(err)
	}
	sandbox := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
	kit.Eventually(ctx, t, "the Sandbox asks for names, as its tier allows", func(ctx context.Context) error {
		if code := ask(ctx, t, ns, sandbox, question{command: "dns", target: "world.test"}); code != connected {
			return fmt.Errorf("the answer is %d", code) // the network may not know of the Pod yet
		}
		return nil
	})
	mustBe(t, ask(ctx, t, ns, sandbox, question{command: "tcp", target: publicAddress}), false)
}
