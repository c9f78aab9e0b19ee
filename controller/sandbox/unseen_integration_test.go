// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

func fromTemplate(name string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Annotations = map[string]string{keys.SandboxTemplateRef: name} }
}

// The cache shows the template as late as it likes: no Pod is made before it has the
// template's isolation.
func TestAPodIsIsolatedByATemplateThatTheCacheHasNotSeenYet(t *testing.T) {
	t.Parallel()
	late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxtemplates")
	e := newEnvironment(t, func(e *environment) { e.Lag = late })
	e.Create(makeSandbox(fromTemplate("nowhere"), func(s *agentsv1beta1.Sandbox) { s.Name = "before" }))
	e.appears("before", &corev1.Pod{}) // it has looked for a template, so that the cache of them is filled
	late.Begin()
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "python"}}
	template.Spec.PodTemplate = makeSandbox().Spec.PodTemplate
	e.Create(template, makeSandbox(fromTemplate("python")))
	pod, policy := &corev1.Pod{}, &networkingv1.NetworkPolicy{}
	e.appears(boxName, pod)
	e.Get(isolation.TemplateName("python"), policy) // before the Pod
	if owner := metav1.GetControllerOf(policy); owner == nil || owner.UID != template.UID {
		t.Errorf("the policy is controlled by %v, want the template", owner)
	}
	if err := e.reconciler.client.Get(t.Context(), e.Key("python"), template, lookup.Glance); err == nil {
		t.Error("the cache showed the template, so that nothing was tested")
	}
}
