// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform engineer moves the cluster to the values of prod: from then on an
// image of a foreign registry is refused, one of an allowed registry is not. The
// policies change without a restart of anything.
func TestProdRefusesForeignRegistries(t *testing.T) {
	ctx := t.Context()
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := release.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the default values: %v", err)
		}
	})
	if err := release.Install(ctx, []string{"prod"}); err != nil {
		t.Fatalf("upgrade to the values of prod: %v", err)
	}
	ns := cluster.Namespace(ctx, t)
	limits := "resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {cpu: 100m, memory: 64Mi, ephemeral-storage: 64Mi}}\n" +
		"securityContext: {capabilities: {drop: [ALL]}}"
	user := "securityContext: {runAsNonRoot: true, runAsUser: 1000}"
	for name, image := range map[string]string{
		"another registry":               "evil.example.com/python:3.12-slim",
		"a look-alike of an allowed one": "docker.io.evil.example.com/library/python:3.12-slim",
		"a look-alike of a repository":   "docker.io/library-evil/python:3.12-slim",
	} {
		t.Run(name, func(t *testing.T) {
			manifest := strings.Replace(sandboxWith("refused", user, limits), "python:3.12-slim", image, 1)
			refusal := cluster.MustRefuse(ctx, t, ns, manifest)
			refusal.MustHaveCause(t, "registry-allowed", "spec.podTemplate.spec.containers[0].image")
			refusal.MustName(t, image)
		})
	}
	cluster.MustApply(ctx, t, ns, sandboxWith("allowed", user, limits))
	cluster.WaitReady(ctx, t, ns, "allowed")
}
