// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// boundedByGit is a platform whose tier goes as far as the Service tools/git, which the
// world may have.
func boundedByGit(services map[types.NamespacedName]*corev1.Service) *config.Platform {
	p := platform()
	tier := p.Tiers["standard"]
	tier.Egress.Ceiling = "git"
	p.Tiers["standard"] = tier
	p.EgressProfiles["git"] = config.EgressProfile{Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}}
	resolved, _ := isolation.Resolve(p, isolation.Network{Services: services})
	return resolved
}

// What a template may open hangs on the Services of the ceiling, which come and go without
// a change of the template.
func TestTemplatesAreJudgedAgainWhenAServiceOfTheCeilingChanges(t *testing.T) {
	var current atomic.Pointer[config.Platform]
	changed := make(chan event.GenericEvent)
	current.Store(boundedByGit(nil))
	e := newEnvironment(t, func(e *environment) { e.settings.Current, e.settings.Changed = current.Load, changed })
	template := makeTemplate()
	template.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "tools"}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "git"}},
		}},
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(8443))}},
	}}}
	e.Create(template)
	const rule = "egress-ceiling"
	e.says(rule, rule+" high Deny 1")
	git := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "git"}, Ports: []corev1.ServicePort{{Port: 8443}}}}
	for _, step := range []struct {
		what     string
		services map[types.NamespacedName]*corev1.Service
		want     []string
	}{
		{"the Service comes", map[types.NamespacedName]*corev1.Service{{Namespace: "tools", Name: "git"}: git}, nil},
		{"and goes", nil, []string{rule + " high Deny 1"}},
	} {
		t.Log(step.what)
		current.Store(boundedByGit(step.services))
		changed <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}
		e.says(rule, step.want...)
	}
}
