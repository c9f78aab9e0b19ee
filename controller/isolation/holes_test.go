// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// Whoever wrote our label and one of our names on a policy of his own, before anything kept
// him from it, or has changed what one of ours selects, is told of like everybody else.
func TestOursAreThePoliciesWithOurNamesThatSelectWhatTheseHaveTo(t *testing.T) {
	template := isolation.Template(makeTemplate("python", nil), isolation.Choice{Profile: "public"}, platform())
	ours := map[string]*networkingv1.NetworkPolicy{
		"the floor": isolation.Floor("team-a"), "the way in for the namespace": isolation.NamespaceIngress("team-a"),
		"a profile's": isolation.Profile("team-a", "public", platform()), "a template's": template,
	}
	widened := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}
	others := map[string]func(*networkingv1.NetworkPolicy){
		"without the label":       func(p *networkingv1.NetworkPolicy) { p.Labels[keys.ManagedBy] = "somebody" },
		"with another name":       func(p *networkingv1.NetworkPolicy) { p.Name = "mine" },
		"named like a template's": func(p *networkingv1.NetworkPolicy) { p.Name = isolation.TemplateName("ruby") },
		"named like a profile's":  func(p *networkingv1.NetworkPolicy) { p.Name = isolation.ProfileName("another") },
		"for every Pod":           func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector = metav1.LabelSelector{} },
		"for Pods of its own":     func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchLabels = map[string]string{"app": "x"} },
		"for fewer Pods":          func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchLabels["app"] = "x" },
		"for fewer, by an expression": func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{widened}
		},
		"that bears another template ": func(p *networkingv1.NetworkPolicy) { p.Labels[keys.Template] = keys.TemplateKey("ruby") },
	}
	for name, policy := range ours {
		if !isolation.Ours(policy) {
			t.Errorf("%s is not taken for ours", name)
		}
		for what, edit := range others {
			theirs := policy.DeepCopy()
			edit(theirs)
			if isolation.Ours(theirs) {
				t.Errorf("%s %s is taken for ours", name, what)
			}
		}
	}
	forged := isolation.Profile("team-a", "unused", platform())
	forged.Spec.PodSelector, forged.Spec.Egress = metav1.LabelSelector{}, []networkingv1.NetworkPolicyEgressRule{{}}
	if holes := isolation.Holes(map[string]string{keys.Sandbox: "true"}, []networkingv1.NetworkPolicy{*forged}); len(holes) == 0 {
		t.Error("the policy of a profile that opens everything for other Pods makes no hole")
	}
}

// tenants is a policy of a tenant's by its spec.
func tenants(t *testing.T, spec string) networkingv1.NetworkPolicy {
	t.Helper()
	var policy networkingv1.NetworkPolicy
	policy.Name = "mine"
	if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestHolesAreWhatOthersOpenBeyondOurs(t *testing.T) {
	hole := func(direction networkingv1.PolicyType, peer string) []isolation.Hole {
		return []isolation.Hole{{Policy: "mine", Direction: direction, Peer: peer}}
	}
	const out, in = networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress
	cases := map[string]struct {
		profile, spec string
		want          []isolation.Hole
	}{
		"everything, under a profile that opens nothing": {"none", "{podSelector: {}, policyTypes: [Egress], egress: [{}]}", hole(out, "everything")},
		"everything, under the internet":                 {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{}]}", hole(out, "everything")},
		"a policy that only closes":                      {"none", "{podSelector: {}, policyTypes: [Egress, Ingress]}", nil},
		"a policy for other Pods":                        {"none", "{podSelector: {matchLabels: {app: other}}, policyTypes: [Egress], egress: [{}]}", nil},
		"egress rules that its types do not name":        {"none", "{podSelector: {}, policyTypes: [Ingress], egress: [{}]}", nil},
		"a range of the internet, under the internet":    {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]}", nil},
		"the same, IPv6":                                 {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: \"2606:4700::/32\"}}]}]}", nil},
		"a private range, under the internet":            {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}]}]}", hole(out, "10.1.0.0/16")},
		"the metadata service":                           {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 169.254.169.254/32}}]}]}", hole(out, "169.254.169.254/32")},
		"a unique local range, IPv6":                     {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: \"fd00::/8\"}}]}]}", hole(out, "fd00::/8")},
		"the metadata service, written as IPv6":          {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: '::ffff:169.254.169.254/128'}}]}]}", hole(out, "::ffff:169.254.169.254/128")},
		"a private range, written as IPv6":               {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: '::ffff:10.0.0.0/104'}}]}]}", hole(out, "::ffff:10.0.0.0/104")},
		"an exception, written as IPv6":                  {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: '2606:4700::/32', except: ['::ffff:10.0.0.0/104']}}]}]}", hole(out, "2606:4700::/32")},
		"all of IPv4, under the internet":                {"public", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}", hole(out, "0.0.0.0/0")},
		"the cluster's DNS again": {
			"dns-only", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, protocol: UDP}],
			  to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]}]}`, nil,
		},
		"another port of the DNS Pods": {
			"dns-only", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 8080}],
			  to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]}]}`,
			hole(out, "Pods with k8s-app=kube-dns of namespaces with kubernetes.io/metadata.name=kube-system"),
		},
		"a range of ports that begins at DNS": {
			"dns-only", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, endPort: 54}],
			  to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]}]}`,
			hole(out, "Pods with k8s-app=kube-dns of namespaces with kubernetes.io/metadata.name=kube-system"),
		},
		"a way in for the namespace":   {"none", "{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}", hole(in, "Pods of the namespace")},
		"a way in for every namespace": {"none", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}", hole(in, "Pods of every namespace")},
		"the router again":             {"none", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: agent-sandbox-system}}, podSelector: {matchLabels: {app: sandbox-router}}}]}]}", nil},
		"without types, a way out":     {"none", "{podSelector: {}, egress: [{}]}", hole(out, "everything")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := platform()
			choice := isolation.Choice{Profile: tc.profile}
			var policies []networkingv1.NetworkPolicy
			for _, policy := range isolation.Policies("team-a", choice, p) {
				policies = append(policies, *policy)
			}
			policies = append(policies, tenants(t, tc.spec))
			if diff := cmp.Diff(tc.want, isolation.Holes(choice.PodLabels(), policies)); diff != "" {
				t.Errorf("Holes() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARangeIsNoHoleIfItLeavesOutWhatOursClose(t *testing.T) {
	public := isolation.Profile("team-a", "public", platform())
	again := tenants(t, "{podSelector: {}, policyTypes: [Egress]}")
	again.Spec.Egress = public.Spec.Egress
	labels := isolation.Choice{Profile: "public"}.PodLabels()
	if holes := isolation.Holes(labels, []networkingv1.NetworkPolicy{*public, again}); len(holes) > 0 {
		t.Errorf("the same rules twice are taken for holes: %v", holes)
	}
	if holes := isolation.Holes(labels, []networkingv1.NetworkPolicy{again}); len(holes) == 0 {
		t.Error("without ours nothing covers them, and no hole is found")
	}
}
