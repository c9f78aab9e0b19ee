// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// A value that the chart does not know stops the upgrade and is named.
func TestPlatformEngineerMistypesAValue(t *testing.T) {
	err := cluster.Helm("agent-sandbox", kit.ReleaseNamespace).Install(t.Context(), nil, "webhook.replicsa=3")
	if err == nil || !strings.Contains(err.Error(), "replicsa") {
		t.Errorf("the upgrade ended with %v, want it to name replicsa", err)
	}
}

// A value of the wrong type in a manifest is refused with its field.
func TestTenantWritesAWrongType(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	_, _, err := cluster.Apply(ctx, ns, sandboxWith("broken", "hostNetwork: \"yes\"", ""))
	if err == nil || !strings.Contains(err.Error(), "hostNetwork") {
		t.Errorf("apply ended with %v, want it to name hostNetwork", err)
	}
}

// A policy that does not compile is refused when it is applied, with file and line,
// and the rules that were in force stay so.
func TestPolicyAuthorBreaksAPolicy(t *testing.T) {
	ctx := t.Context()
	policy := func(rego string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: kit.ReleaseNamespace, Name: "extra-policy", Labels: map[string]string{keys.PolicySource: "true"},
			},
			Data: map[string]string{"team-label.rego": rego},
		}
	}
	err := cluster.Create(ctx, policy("package policies.extra.team_label\n\ndeny contains msg if {\n\tinput.kind = = \"Sandbox\"\n}\n"))
	if err == nil {
		_ = cluster.Delete(ctx, policy(""))
		t.Fatal("a policy that does not compile was stored")
	}
	for _, part := range []string{"team-label.rego", "4"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not name %q: %v", part, err)
		}
	}
	getErr := cluster.Get(ctx, client.ObjectKeyFromObject(policy("")), &corev1.ConfigMap{})
	if client.IgnoreNotFound(getErr) != nil || getErr == nil {
		t.Errorf("the broken policy can be read: %v", getErr)
	}
	ns := cluster.Namespace(ctx, t)
	cluster.MustRefuse(ctx, t, ns, sandboxWith("refused", "hostNetwork: true", "")).MustName(t, "host-namespaces")
}
