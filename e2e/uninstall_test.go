// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform engineer removes the bundle, installs it under another name into
// another namespace, and returns to the first. Uninstalling leaves no webhook
// behind, so the cluster is never stuck with one that nobody answers.
func TestPlatformEngineerUninstallsAndMoves(t *testing.T) {
	ctx := t.Context()
	first := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := first.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the first release: %v", err)
		}
	})
	if err := first.Uninstall(); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	mustHaveNoWebhooks(ctx, t, kit.ReleaseNamespace)

	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "platform-other"}}
	t.Cleanup(func() { _ = client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(ctx), other)) })
	second := cluster.Helm("workspaces", other.Name)
	if err := second.Install(ctx, nil); err != nil {
		t.Fatalf("install under another name: %v", err)
	}
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	cluster.MustRefuse(ctx, t, ns, sandboxWith("refused", "hostNetwork: true", "")).MustName(t, "host-namespaces")
	if err := second.Uninstall(); err != nil {
		t.Fatalf("uninstall the second release: %v", err)
	}
	mustHaveNoWebhooks(ctx, t, other.Name)

	// Nobody judges or reconciles now, and nothing is stuck.
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "workspace"}, &corev1.Pod{}); err != nil {
		t.Errorf("uninstalling took a tenant's Pod away: %v", err)
	}
}

func mustHaveNoWebhooks(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	for _, list := range []client.ObjectList{&validating, &mutating} {
		if err := cluster.List(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range validating.Items {
		for _, w := range validating.Items[i].Webhooks {
			mustNotPointInto(t, namespace, validating.Items[i].Name, w.ClientConfig)
		}
	}
	for i := range mutating.Items {
		for _, w := range mutating.Items[i].Webhooks {
			mustNotPointInto(t, namespace, mutating.Items[i].Name, w.ClientConfig)
		}
	}
}

func mustNotPointInto(t *testing.T, namespace, name string, config admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	if config.Service != nil && config.Service.Namespace == namespace || strings.HasPrefix(name, "agent-sandbox") {
		t.Errorf("webhook configuration %s is still there", name)
	}
}
