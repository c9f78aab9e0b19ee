// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// The webhook is not ready, and admits nothing, until its policies are loaded, whatever
// else it has; then it is. It serves no profiles.
func TestTheWebhookIsReadyOnceItsPoliciesAreLoaded(t *testing.T) {
	ctx := t.Context()
	w := startWebhook(t, "rules: [this is no map]")
	for _, name := range []string{"caches", "certificate", "server"} {
		w.await(ctx, "check "+name+" passes", func(ctx context.Context) error { return w.ready(ctx, name) })
	}
	for _, name := range [][]string{nil, {"policies"}} {
		if err := w.ready(ctx, name...); err == nil || !strings.Contains(err.Error(), "500") {
			t.Errorf("readiness %v without policies: %v, want 500", name, err)
		}
	}
	sandbox := func() *agentsv1beta1.Sandbox {
		made := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: judged, GenerateName: "box-"}}
		made.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
		return made
	}
	if err := w.admin.Create(ctx, sandbox()); err == nil || !strings.Contains(err.Error(), "the policies are not loaded yet") {
		t.Errorf("a create without policies: %v, want it refused and why", err)
	}
	mend := client.RawPatch("application/merge-patch+json", []byte(`{"data": {"policy.yaml": ""}}`))
	policies := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: release + "-policies"}}
	check(t, w.admin.Patch(ctx, policies, mend))
	w.await(ctx, "the webhook is ready", func(ctx context.Context) error { return w.ready(ctx) })
	check(t, w.admin.Create(ctx, sandbox()))

	for _, address := range []string{w.metrics, w.probes} {
		response, err := fetch(ctx, "http://"+address+"/debug/pprof/")
		if err == nil {
			err = errors.Join(errors.New("they are served"), response.Body.Close())
		}
		if !strings.Contains(err.Error(), "404") {
			t.Errorf("profiles at %s: %v, want none", address, err)
		}
	}
}
