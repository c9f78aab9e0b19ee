// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

func makeTemplate(name string, own *extensionsv1beta1.NetworkPolicySpec) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	template.Spec.NetworkPolicy = own
	return template
}

func TestTemplateOpensWhatTheProfileOpensUnlessItHasRulesOfItsOwn(t *testing.T) {
	profile := isolation.Profile("team-a", "public", platform())
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(443)
	egressRule := networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}}
	named := networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port, Protocol: &tcp}}}
	sameNamespace := networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}
	cases := map[string]struct {
		own     *extensionsv1beta1.NetworkPolicySpec
		ingress isolation.Ingress
		want    networkingv1.NetworkPolicySpec
	}{
		"no rules of its own": {
			want: networkingv1.NetworkPolicySpec{Ingress: profile.Spec.Ingress, Egress: profile.Spec.Egress},
		},
		"a tier whose Sandboxes their namespace may reach": {
			ingress: isolation.IngressNamespace,
			want: networkingv1.NetworkPolicySpec{
				Ingress: append(append([]networkingv1.NetworkPolicyIngressRule{}, profile.Spec.Ingress...), sameNamespace),
				Egress:  profile.Spec.Egress,
			},
		},
		"empty rules allow nothing": {own: &extensionsv1beta1.NetworkPolicySpec{}},
		"rules of one direction close the other": {
			own:     &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{egressRule}},
			ingress: isolation.IngressNamespace,
			want:    networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{named}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := makeTemplate("python", tc.own)
			before := template.DeepCopy()
			got := isolation.Template(template, isolation.Choice{Profile: "public", Ingress: tc.ingress}, platform())
			tc.want.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{
				keys.SandboxTemplateRefHash: keys.NameHash("python"), keys.Template: keys.TemplateKey("python"),
			}}
			tc.want.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" || got.Name != "python-network-policy" {
				t.Errorf("Template() named %q (-want +got):\n%s", got.Name, diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoliciesOfTemplatesWhoseHashesCollideSelectOnlyTheirOwnPods(t *testing.T) {
	podOf := func(name string) labels.Set {
		set := labels.Set(isolation.Choice{Profile: "public", Template: name}.PodLabels())
		set[keys.SandboxTemplateRefHash] = keys.NameHash(name)
		return set
	}
	policy := isolation.Template(makeTemplate("costarring", nil), isolation.Choice{}, platform())
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(podOf("costarring")) || selector.Matches(podOf("liquid")) {
		t.Errorf("selector %q matches the own Pod: %t, the other's: %t",
			selector, selector.Matches(podOf("costarring")), selector.Matches(podOf("liquid")))
	}
	for _, profile := range []string{"public", "none"} {
		wide, err := metav1.LabelSelectorAsSelector(&isolation.Profile("team-a", profile, platform()).Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if wide.Matches(podOf("costarring")) {
			t.Errorf("the policy of profile %q widens what a template's closes", profile)
		}
	}
}

func TestPoliciesOfATemplateAreTheFloor(t *testing.T) {
	got := isolation.Policies("team-a", isolation.Choice{Profile: "public", Ingress: isolation.IngressNamespace, Template: "python"}, platform())
	if diff := cmp.Diff([]*networkingv1.NetworkPolicy{isolation.Floor("team-a")}, got); diff != "" {
		t.Errorf("Policies() (-want +got):\n%s", diff)
	}
}
