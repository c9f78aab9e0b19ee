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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// cunning is what a tenant puts into a template to get out: the labels of another profile
// and of the DNS server, a resolver outside, and a name for the metadata service.
const cunning = `
dnsPolicy: None
dnsConfig: {nameservers: [203.0.113.10]}
hostAliases: [{ip: 169.254.169.254, hostnames: [inside.test]}, {ip: 203.0.113.10, hostnames: [outside.test]}]
terminationGracePeriodSeconds: 1
securityContext: {runAsNonRoot: true, runAsUser: 1000}
`

var forged = "podTemplate:\n    metadata: {labels: {" + keys.EgressProfile + ": public, k8s-app: kube-dns, app: sandbox-router}}"

// A tenant who may do what the chart's roles let him, in a tier that allows names only,
// tries everything to reach more: what is admitted gets him nothing, the rest is refused.
func TestHostileTenantReachesNoMoreThanHisTierAllows(t *testing.T) { //nolint:tparallel // Its parts build on one another.
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "restricted")
	tenant := cluster.Tenant(ctx, t, ns)
	questions := map[string]question{
		"a public address":     {command: "tcp", target: publicAddress},
		"the same by a name":   {command: "tcp", target: "outside.test:80"},
		"the metadata service": {command: "tcp", target: metadataAddress},
		"the same by an alias": {command: "tcp", target: "inside.test:80"},
		"a resolver outside":   {command: "dns", target: "known.elsewhere.test"},
		"the apiserver":        {command: "tcp", target: apiserverService},
	}
	control := ordinaryPod(ns, "control", "sleep")
	control.Spec.HostAliases = []corev1.HostAlias{{IP: "169.254.169.254", Hostnames: []string{"inside.test"}}, {IP: "203.0.113.10", Hostnames: []string{"outside.test"}}}
	control.Spec.DNSPolicy, control.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"203.0.113.10"}}
	mustCreate(ctx, t, control)
	waitPod(ctx, t, control)
	targets := mustAllAnswer(ctx, t, ns, questions)

	template := asTemplate(strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, `["/bin/probe", "sleep"]`, "podTemplate:", forged).
		Replace(sandboxWith("python", cunning, "")))
	tenant.MustRefuse(ctx, t, ns, template+"  networkPolicy: {egress: [{}]}\n").MustName(t, "spec.networkPolicy.egress", "dns-only")
	tenant.MustRefuse(ctx, t, ns, strings.Replace(template, "metadata: {name: python}", "metadata: {name: python, annotations: {"+keys.EgressProfile+": public}}", 1)).
		MustName(t, keys.EgressProfile, "public", "dns-only")
	for _, management := range []string{"Managed", "Unmanaged"} {
		tenant.MustApply(ctx, t, ns, template+"  networkPolicyManagement: "+management+"\n")
		tenant.MustApply(ctx, t, ns, emptyPool)
		tenant.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
		sandbox := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
		got := answers(ctx, t, client.ObjectKey{Namespace: ns, Name: sandbox}, targets)
		for what, q := range questions {
			t.Run(management+", "+what, func(t *testing.T) { mustBe(t, got[q.written()], false) })
		}
		mustNotChange(ctx, t, tenant, ns, sandbox)
		claim := kit.Object(t, ns, kit.Readme(t, "manifest: claim"))
		if err := tenant.Delete(ctx, claim); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(ctx, t, "the Sandbox is gone", func(ctx context.Context) error {
			err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: sandbox}, &agentsv1beta1.Sandbox{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it can be read: %w", err)
		})
	}
}

// mustNotChange lets a tenant try to change the isolation of what runs.
func mustNotChange(ctx context.Context, t *testing.T, tenant *kit.Cluster, ns, name string) {
	t.Helper()
	profile := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+keys.EgressProfile+`":"public"}}}`))
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	if err := tenant.Patch(ctx, sandbox, profile); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("another profile for the Sandbox ended with %v, want it refused", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+keys.Sandbox+`":null}}}`))
	if err := tenant.Patch(ctx, pod, label); !apierrors.IsForbidden(err) {
		t.Errorf("taking the label off the Pod ended with %v, want it refused", err)
	}
	debug := client.RawPatch("application/strategic-merge-patch+json",
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"`+probeImage+`"}]}}`))
	if err := tenant.SubResource("ephemeralcontainers").Patch(ctx, pod, debug); !apierrors.IsForbidden(err) {
		t.Errorf("an ephemeral container ended with %v, want it refused", err)
	}
}
