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
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
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

// What a template that has gone left follows the network as it is now, by what its labels
// record; rules of its own do not depend on the network, but on the tier.
func TestPolicyOfATemplateThatHasGone(t *testing.T) {
	now := platform()
	now.Cluster.CIDRs = append(now.Cluster.CIDRs, "198.51.100.7/32", "192.0.2.77/32")
	now.Cluster.Discovered = []string{"192.0.2.77/32"}
	now.Tiers["closed"] = config.Tier{Egress: config.TierEgress{Profile: "none", Ceiling: "public"}}
	owned := []metav1.OwnerReference{{Name: "python"}}
	own := func(cidr string) *extensionsv1beta1.NetworkPolicySpec {
		return &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}},
		}}
	}
	profiled := func(profile string, p *config.Platform) *networkingv1.NetworkPolicy {
		return isolation.Template(makeTemplate("python", nil), isolation.Choice{Profile: profile, Ingress: isolation.IngressNamespace}, p)
	}
	ruled := func(rules *extensionsv1beta1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
		return isolation.Template(makeTemplate("python", rules), isolation.Choice{}, platform())
	}
	edited := func(policy *networkingv1.NetworkPolicy, edit func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
		edit(policy)
		return policy
	}
	open := func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}} }
	let := func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} }
	widen := func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector = metav1.LabelSelector{} }
	one := func(p *networkingv1.NetworkPolicy) { p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1] }
	unmarked := func(p *networkingv1.NetworkPolicy) { delete(p.Labels, keys.Rules) }
	closed := ruled(&extensionsv1beta1.NetworkPolicySpec{})
	but := own("192.0.2.0/24")
	but.Egress[0].To[0].IPBlock.Except = []string{"192.0.2.77/32"}
	without := ruled(but)
	gone := profiled("public", platform())
	gone.Labels[keys.EgressProfile] = "gone"
	cases := map[string]struct {
		left *networkingv1.NetworkPolicy
		tier string
		want *networkingv1.NetworkPolicy
	}{
		"a node came":                          {profiled("public", platform()), "", profiled("public", now)},
		"nothing that concerns it":             {profiled("none", platform()), "", profiled("none", now)},
		"its profile is not configured":        {gone, "", gone},
		"rules of its own":                     {ruled(own("10.0.0.0/8")), "", ruled(own("10.0.0.0/8"))},
		"rules of its own below a ceiling":     {ruled(own("192.0.2.0/26")), "closed", ruled(own("192.0.2.0/26"))},
		"the same, and a node came":            {ruled(own("192.0.2.0/24")), "closed", without},
		"rules of its own beyond a ceiling":    {ruled(own("10.0.0.0/8")), "closed", closed},
		"rules of its own in an unknown tier":  {ruled(own("10.0.0.0/8")), "unheard-of", ruled(own("10.0.0.0/8"))},
		"the same, written as IPv6":            {ruled(own("::ffff:10.0.0.0/104")), "closed", closed},
		"rules of its own that covered a node": {ruled(own("198.51.100.0/24")), "closed", closed},
		"egress that somebody opened":          {edited(ruled(own("10.0.0.0/8")), open), "", closed},
		"a way in that somebody opened":        {edited(ruled(own("10.0.0.0/8")), let), "", closed},
		"a selector that somebody widened":     {edited(ruled(own("10.0.0.0/8")), widen), "", ruled(own("10.0.0.0/8"))},
		"a direction that somebody took away":  {edited(ruled(own("10.0.0.0/8")), one), "", ruled(own("10.0.0.0/8"))},
		"rules that nobody marked yet":         {edited(ruled(own("10.0.0.0/8")), unmarked), "", ruled(own("10.0.0.0/8"))},
		"a profile's, opened":                  {edited(profiled("none", now), open), "", profiled("none", now)},
		"a profile's, its selector widened":    {edited(profiled("none", now), widen), "", profiled("none", now)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.left.OwnerReferences = owned
			before := tc.left.DeepCopy()
			got := isolation.Recorded(tc.left, tc.tier, now)
			tc.want = tc.want.DeepCopy()
			tc.want.OwnerReferences = owned
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Recorded() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, isolation.Recorded(got, tc.tier, now)); diff != "" {
				t.Errorf("a second time (-once +twice):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.left); diff != "" {
				t.Errorf("the policy of the cache was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Below a ceiling the own rules of a template leave out what was discovered in the cluster,
// which nobody can write down, and stay what they are otherwise.
func TestOwnRulesLeaveOutWhatWasDiscovered(t *testing.T) {
	p := platform()
	p.Tiers["closed"] = config.Tier{Egress: config.TierEgress{Profile: "none", Ceiling: "public"}}
	p.Cluster.Discovered = []string{"198.51.100.7/32", "2606:4700:9::/64"}
	p.Cluster.CIDRs = p.Cluster.Discovered
	block := func(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
	}
	pods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	rule := func(peers ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyEgressRule {
		return []networkingv1.NetworkPolicyEgressRule{{To: peers}}
	}
	cases := map[string]struct {
		tier      string
		own, want []networkingv1.NetworkPolicyEgressRule
	}{
		"a range with a node":                  {"closed", rule(block("198.51.100.0/24")), rule(block("198.51.100.0/24", "198.51.100.7/32"))},
		"a range with a node, IPv6":            {"closed", rule(block("2606:4700::/32")), rule(block("2606:4700::/32", "2606:4700:9::/64"))},
		"a range that leaves it out already":   {"closed", rule(block("198.51.100.0/24", "198.51.100.0/28")), rule(block("198.51.100.0/24", "198.51.100.0/28"))},
		"a range beside it":                    {"closed", rule(block("192.0.2.0/24")), rule(block("192.0.2.0/24"))},
		"the node itself, beside another peer": {"closed", rule(block("198.51.100.7/32"), block("192.0.2.0/24")), rule(block("192.0.2.0/24"))},
		"nothing but the node":                 {"closed", rule(block("198.51.100.7/32")), nil},
		"Pods":                                 {"closed", rule(pods), rule(pods)},
		"in a tier without a ceiling":          {"standard", rule(block("198.51.100.0/24")), rule(block("198.51.100.0/24"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := makeTemplate("python", &extensionsv1beta1.NetworkPolicySpec{Egress: tc.own})
			before := template.DeepCopy()
			got := isolation.Template(template, isolation.Choice{Tier: tc.tier}, p).Spec.Egress
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was changed (-before +after):\n%s", diff)
			}
			if _, invalid := isolation.Choose(p, isolation.SubjectOf(template, tc.tier)); invalid != nil && tc.own[0].To[0].IPBlock != nil {
				t.Errorf("Choose() = %v, want the address of a node to be no reason", invalid)
			}
		})
	}
}
