// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC) }

// makeClaim gives a claim on the pool "pool", changed by the edits.
func makeClaim(name string, edits ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	claim := &extensionsv1beta1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "claim-uid", Generation: 3, CreationTimestamp: metav1.NewTime(noon())},
		Spec:       extensionsv1beta1.SandboxClaimSpec{WarmPoolRef: extensionsv1beta1.SandboxWarmPoolRef{Name: "pool"}},
	}
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

// makeTemplate gives the template "template" with one container.
func makeTemplate(edits ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "template", UID: "template-uid"}}
	template.Spec.PodTemplate = agentsv1beta1.PodTemplate{
		ObjectMeta: agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "workspace"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}},
	}
	for _, edit := range edits {
		edit(template)
	}
	return template
}

// makePool gives the pool "pool" of that template.
func makePool(edits ...func(*extensionsv1beta1.SandboxWarmPool)) *extensionsv1beta1.SandboxWarmPool {
	pool := &extensionsv1beta1.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pool", UID: "pool-uid"},
		Spec: extensionsv1beta1.SandboxWarmPoolSpec{
			Replicas: new(int32(1)), TemplateRef: extensionsv1beta1.SandboxTemplateRef{Name: "template"},
		},
	}
	for _, edit := range edits {
		edit(pool)
	}
	return pool
}

func withLifecycle(lifecycle extensionsv1beta1.ClaimLifecycle) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle = &lifecycle }
}

func withEnv(variables ...extensionsv1beta1.EnvVar) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Env = variables }
}

func withPodMetadata(labels, annotations map[string]string) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) {
		c.Spec.AdditionalPodMetadata = agentsv1beta1.PodMetadata{Labels: labels, Annotations: annotations}
	}
}
