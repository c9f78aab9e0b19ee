// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// sandboxWith returns a Sandbox whose Pod spec has more lines, and whose container
// has more lines.
func sandboxWith(name, podLines, containerLines string) string {
	return `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: ` + name + `}
spec:
  podTemplate:
    spec:
` + indent(podLines, 6) + `
      containers:
        - name: workspace
          image: python:3.12-slim
          command: ["sh", "-c", "sleep infinity"]
` + indent(containerLines, 10)
}

func indent(lines string, by int) string {
	if strings.TrimSpace(lines) == "" {
		return ""
	}
	prefix := strings.Repeat(" ", by)
	return prefix + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n"+prefix) + "\n"
}

// A tenant asks for what a Sandbox must not have, and is told at once which rule
// refused which field, with which value, and what to do.
func TestTenantIsRefusedAndToldWhy(t *testing.T) {
	ctx := t.Context()
	cases := map[string]struct {
		pod, container string
		rule, field    string
		parts          []string
	}{
		"a privileged container": {
			container: "securityContext: {privileged: true}",
			rule:      "privileged", field: "spec.podTemplate.spec.containers[0].securityContext.privileged",
			parts: []string{"true"},
		},
		"a privileged init container": {
			pod:  "initContainers: [{name: setup, image: \"python:3.12-slim\", securityContext: {privileged: true}}]",
			rule: "privileged", field: "spec.podTemplate.spec.initContainers[0].securityContext.privileged",
		},
		"a folder of the node": {
			pod:  "volumes: [{name: host, hostPath: {path: /etc}}]",
			rule: "hostpath", field: "spec.podTemplate.spec.volumes[0].hostPath",
			parts: []string{"/etc"},
		},
		"the network of the node": {
			pod: "hostNetwork: true", rule: "host-namespaces", field: "spec.podTemplate.spec.hostNetwork",
		},
		"a port of the node": {
			container: "ports: [{containerPort: 80, hostPort: 80}]",
			rule:      "host-port", field: "spec.podTemplate.spec.containers[0].ports[0].hostPort", parts: []string{"80"},
		},
		"a ServiceAccount token": {
			pod: "automountServiceAccountToken: true", rule: "automount-token", field: "spec.podTemplate.spec.automountServiceAccountToken",
		},
	}
	ns := cluster.Namespace(ctx, t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusal := cluster.MustRefuse(ctx, t, ns, sandboxWith("refused", tc.pod, tc.container))
			refusal.MustName(t, append(tc.parts, tc.rule, tc.field)...)
			refusal.MustHaveCause(t, tc.rule, tc.field)
		})
	}
}

// Several faults in one object come back together, so that one more try is enough.
func TestTenantSeesAllFaultsAtOnce(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	refusal := cluster.MustRefuse(ctx, t, ns, sandboxWith("refused",
		"hostNetwork: true\nvolumes: [{name: host, hostPath: {path: /}}]", "securityContext: {privileged: true}"))
	refusal.MustHaveCause(t, "privileged", "spec.podTemplate.spec.containers[0].securityContext.privileged")
	refusal.MustHaveCause(t, "hostpath", "spec.podTemplate.spec.volumes[0].hostPath")
	refusal.MustHaveCause(t, "host-namespaces", "spec.podTemplate.spec.hostNetwork")
}

// The refusal that the README shows is the one that the tenant gets.
func TestTenantGetsTheRefusalOfTheReadme(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	refusal := cluster.MustRefuse(ctx, t, ns, kit.Readme(t, "manifest: refused"))
	if want := kit.Readme(t, "output: refused"); refusal.Message != want {
		t.Errorf("the refusal is not the README's:\n%s", refusal.Message)
	}
}

// In a namespace that enforces the restricted Pod Security level, the tenant is told
// at apply, not by a Pod that never starts.
func TestTenantOfARestrictedNamespaceIsToldAtApply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, "pod-security.kubernetes.io/enforce", "restricted")
	refusal := cluster.MustRefuse(ctx, t, ns, sandboxWith("root", "", ""))
	refusal.MustName(t, "pss-restricted", "runAsNonRoot")

	cluster.MustApply(ctx, t, ns, sandboxWith("user",
		"securityContext: {runAsNonRoot: true, runAsUser: 1000}", "securityContext: {capabilities: {drop: [ALL]}}"))
	cluster.WaitReady(ctx, t, ns, "user")
}

// What is refused in a Sandbox is refused in a template too, before any pool or
// claim makes Sandboxes of it.
func TestTemplateIsJudgedLikeASandbox(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	manifest := strings.NewReplacer("agents.x-k8s.io/v1beta1", "extensions.agents.x-k8s.io/v1beta1", "kind: Sandbox", "kind: SandboxTemplate").
		Replace(sandboxWith("refused", "", "securityContext: {privileged: true}"))
	cluster.MustRefuse(ctx, t, ns, manifest).
		MustHaveCause(t, "privileged", "spec.podTemplate.spec.containers[0].securityContext.privileged")
}

// A user may not write what only the controllers write.
func TestTenantMayNotForgeMetadata(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	manifest := strings.Replace(sandboxWith("forged", "", ""), "metadata: {name: forged}",
		"metadata: {name: forged, annotations: {agents.x-k8s.io/pod-name: somebody-elses}}", 1)
	cluster.MustRefuse(ctx, t, ns, manifest).
		MustName(t, "reserved-metadata", "metadata.annotations[agents.x-k8s.io/pod-name]", "somebody-elses", "forged")
}
