// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
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

func withVolumes(names ...string) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) { c.Spec.VolumeClaimTemplates = volumes(names...) }
}

// makeSandbox gives the Sandbox "box" of the pool "pool" that is ready, changed by the
// edits.
func makeSandbox(edits ...func(*agentsv1beta1.Sandbox)) *agentsv1beta1.Sandbox {
	sandbox, err := blueprint.ForPool(makePool(), makeTemplate(), blueprint.Options{SafeToEvict: true})
	if err != nil {
		panic(err) //nolint:forbidigo // The builders above are wrong.
	}
	blueprint.SetName(sandbox, "box")
	sandbox.UID, sandbox.ResourceVersion, sandbox.CreationTimestamp = "box-uid", "1", metav1.NewTime(noon())
	sandbox.Status.PodIPs = []string{"10.1.2.3"}
	withCondition(agentsv1beta1.ConditionReady, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady, "Pod is Ready", 0)(sandbox)
	for _, edit := range edits {
		edit(sandbox)
	}
	return sandbox
}

// withCondition sets a condition, whose time is in minutes after noon.
func withCondition(kind string, status metav1.ConditionStatus, reason, message string, minutes int) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		meta.RemoveStatusCondition(&s.Status.Conditions, kind)
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(noon().Add(time.Duration(minutes) * time.Minute)),
		})
	}
}

// ready sets the stored Ready condition of a claim at noon.
func ready(claim *extensionsv1beta1.SandboxClaim, status metav1.ConditionStatus, reason string) {
	claim.Status.Conditions = []metav1.Condition{{
		Type: agentsv1beta1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon()),
	}}
}

// makeScope gives what a pass at noon knows of a new claim.
func makeScope() *scope {
	return &scope{
		claim: makeClaim("claim"), now: noon(), record: &record{uid: "claim-uid", firstSeen: noon()},
		owned: map[string]*agentsv1beta1.Sandbox{},
	}
}
