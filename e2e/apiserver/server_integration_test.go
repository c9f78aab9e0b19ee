// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package apiserver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

func TestAnApiserverServesOurKindsAndCountsWritesByUser(t *testing.T) {
	ctx := t.Context()
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	controller, err := apiserver.NewClient(server.As("tested", apiserver.Controllers))
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "box"}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	for _, object := range []client.Object{namespace, sandbox} {
		if err := admin.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	if sandbox.Spec.OperatingMode != agentsv1beta1.OperatingModeRunning {
		t.Errorf("the definition's default is not set: operatingMode is %q", sandbox.Spec.OperatingMode)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "box"}, Spec: sandbox.Spec.PodTemplate.Spec}
	if err := controller.Create(ctx, pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := controller.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if err := controller.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x"}}); !apierrors.IsForbidden(err) {
		t.Errorf("the controller's role lets it create ConfigMaps: %v", err)
	}
	if err := server.Audit.Settle(ctx, server.Config); err != nil {
		t.Fatal(err)
	}
	got, err := server.Audit.Writes(apiserver.Filter{User: "tested"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(apiserver.Counts{"create pods": 1, "create configmaps (403)": 1}, got); diff != "" {
		t.Errorf("writes of the controller (-want +got):\n%s", diff)
	}
}
