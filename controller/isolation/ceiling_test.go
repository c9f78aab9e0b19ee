// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// ceilings is a configuration with a profile to be the ceiling of its one tier.
func ceilings(ceiling string) *config.Platform {
	p := platform()
	p.EgressProfiles["workspace"] = config.EgressProfile{DNS: true, Internet: true, Rules: []config.EgressRule{{PodSelector: &metav1.LabelSelector{}}}}
	p.EgressProfiles["halves"] = config.EgressProfile{Rules: []config.EgressRule{{CIDRs: []string{"198.51.100.0/25"}}, {CIDRs: []string{"198.51.100.128/25"}}}}
	tier := p.Tiers[p.DefaultTier]
	tier.Egress.Ceiling = ceiling
	p.Tiers[p.DefaultTier] = tier
	return p
}

// gitCeiling is a configuration whose one tier goes as far as the Service tools/git, which
// is what the world has; nil for a world without it.
func gitCeiling(git *corev1.Service) *config.Platform {
	p := ceilings("git")
	p.EgressProfiles["git"] = config.EgressProfile{Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}}
	services := map[types.NamespacedName]*corev1.Service{}
	if git != nil {
		services[types.NamespacedName{Namespace: "tools", Name: "git"}] = git
	}
	resolved, _ := isolation.Resolve(p, isolation.Network{Services: services})
	return resolved
}

// A ceiling of Services opens the Pods behind them; one that nobody can resolve, or has
// resolved, opens nothing, and whoever is refused for that hears which it is.
func TestACeilingOfServicesIsThePodsBehindThem(t *testing.T) {
	git := &corev1.Service{Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "git"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
	}}
	const pods = `[{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tools}}, podSelector: {matchLabels: {app: git}}}], ports: [{port: 8443}]}]`
	unresolved := gitCeiling(nil)
	unresolved.EgressProfiles["git"] = config.EgressProfile{Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}}
	cases := map[string]struct {
		platform *config.Platform
		rules    string
		// want are parts of the one refusal; none for none.
		want []string
	}{
		"the Pods behind it":                      {gitCeiling(git), pods, nil},
		"the Pods behind it, on another port":     {gitCeiling(git), strings.Replace(pods, "8443", "22", 1), []string{"egress[0].to[0]", `profile "git": narrow`}},
		"everything":                              {gitCeiling(git), "[{}]", []string{"egress[0].to", "everything"}},
		"the Pods, when there is no such Service": {gitCeiling(nil), pods, []string{"egress[0].to[0]", "Service tools/git opens nothing: there is no such Service"}},
		"everything, when there is none":          {gitCeiling(nil), "[{}]", []string{"egress[0].to", "Service tools/git opens nothing"}},
		"everything, when nobody has looked":      {unresolved, "[{}]", []string{"egress[0].to", "everything"}},
		"an address, when nobody has looked":      {unresolved, "[{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]", []string{"covers 198.51.100.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var rules []networkingv1.NetworkPolicyEgressRule
			if err := yaml.UnmarshalStrict([]byte(tc.rules), &rules); err != nil {
				t.Fatal(err)
			}
			tierName, tier, _ := tc.platform.TierOf("")
			got := isolation.Beyond(tc.platform, tierName, tier, rules, field.NewPath("egress"))
			if (len(got) == 1) != (len(tc.want) > 0) {
				t.Fatalf("refusals %v, want %q", got, tc.want)
			}
			for _, part := range tc.want {
				if !strings.Contains(got[0].Error(), part) {
					t.Errorf("the refusal is %q, want it to name %q", got[0], part)
				}
			}
		})
	}
}

func TestOwnRulesGoNoFurtherThanTheCeiling(t *testing.T) {
	cases := map[string]struct {
		ceiling, rules string
		// want are parts of the refusals, one a refusal: rule, value, and what is closed.
		want [][]string
	}{
		"no ceiling":                    {"", "[{}]", nil},
		"nothing":                       {"none", "[]", nil},
		"everything":                    {"workspace", "[{}]", [][]string{{"egress[0].to", "everything", "workspace"}}},
		"a part of the internet":        {"workspace", "[{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]", nil},
		"one address, IPv6":             {"workspace", "[{to: [{ipBlock: {cidr: '2606:4700::1/128'}}]}]", nil},
		"the metadata service":          {"workspace", "[{to: [{ipBlock: {cidr: 169.254.169.254/32}}]}]", [][]string{{"egress[0].to[0]", "169.254.169.254/32", "covers 169.254.169.254"}}},
		"the same, written as IPv6":     {"workspace", "[{to: [{ipBlock: {cidr: '::ffff:169.254.169.254/128'}}]}]", [][]string{{"egress[0].to[0]", "::ffff:169.254.169.254/128"}}},
		"the same, in hexadecimal":      {"workspace", "[{to: [{ipBlock: {cidr: '::ffff:a9fe:a9fe/128'}}]}]", [][]string{{"egress[0].to[0]", "::ffff:a9fe:a9fe/128"}}},
		"all of IPv4, written as IPv6":  {"workspace", "[{to: [{ipBlock: {cidr: '::ffff:0:0/96'}}]}]", [][]string{{"egress[0].to[0]", "::ffff:0:0/96"}}},
		"an exception, written as IPv6": {"workspace", "[{to: [{ipBlock: {cidr: 198.51.100.0/24, except: ['::ffff:198.51.100.0/121']}}]}]", [][]string{{"egress[0].to[0]", "198.51.100.0/24"}}},
		"half of all":                   {"workspace", "[{to: [{ipBlock: {cidr: 128.0.0.0/1}}]}]", [][]string{{"128.0.0.0/1", "covers 168.63.129.16"}}},
		"all but what is private":       {"workspace", "[{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]}]", [][]string{{"0.0.0.0/0", "covers 0.0.0.0"}}},
		"the second rule, second peer":  {"workspace", "[{to: [{podSelector: {}}]}, {to: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}]}]", [][]string{{"egress[1].to[1]", "10.0.0.0/8"}}},
		"Pods of the namespace":         {"workspace", "[{to: [{podSelector: {matchLabels: {app: git}}}], ports: [{port: 443}]}]", nil},
		"Pods of another namespace":     {"workspace", "[{to: [{namespaceSelector: {matchLabels: {a: b}}}]}]", [][]string{{"namespaces with a=b"}}},
		"the cluster's DNS":             {"dns-only", "[{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns, a: b}}}], ports: [{port: 53, protocol: UDP}, {port: 53}]}]", nil},
		"the DNS server, all its ports": {"dns-only", "[{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]}]", [][]string{{"egress[0].to[0]", "kube-dns"}}},
		"what two rules cover together": {"halves", "[{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]", nil},
		"more than two rules cover":     {"halves", "[{to: [{ipBlock: {cidr: 198.51.100.0/23}}]}]", [][]string{{"covers 198.51.101.0"}}},
		"two faults, both told": {
			"none", "[{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}, {to: [{podSelector: {}}]}]",
			[][]string{{"egress[0].to[0]", "198.51.100.0/24"}, {"egress[1].to[0]", "Pods of the namespace"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := ceilings(tc.ceiling)
			var rules []networkingv1.NetworkPolicyEgressRule
			if err := yaml.UnmarshalStrict([]byte(tc.rules), &rules); err != nil {
				t.Fatal(err)
			}
			tierName, tier, _ := p.TierOf("")
			got := isolation.Beyond(p, tierName, tier, rules, field.NewPath("egress"))
			if len(got) != len(tc.want) {
				t.Fatalf("%d refusals, want %d: %v", len(got), len(tc.want), got)
			}
			for i, parts := range tc.want {
				for _, part := range parts {
					if !strings.Contains(got[i].Error(), part) {
						t.Errorf("refusal %d is %q, want it to name %q", i, got[i], part)
					}
				}
			}
		})
	}
}

// A template whose own rules are beyond the ceiling gives no choice; an unmanaged one,
// of whose rules no policy is made, does.
func TestATemplateBeyondTheCeilingIsNotChosen(t *testing.T) {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "python"}}
	template.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}}
	_, invalid := isolation.Choose(ceilings("workspace"), isolation.SubjectOf(template, ""))
	if !isolation.IsBeyond(invalid) || invalid.Field != "spec.networkPolicy.egress[0].to" {
		t.Errorf("Choose() = %v, want a refusal of spec.networkPolicy.egress[0].to", invalid)
	}
	template.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
	if _, invalid := isolation.Choose(ceilings("workspace"), isolation.SubjectOf(template, "")); invalid != nil {
		t.Errorf("an unmanaged template is refused: %v", invalid)
	}
	if _, invalid := isolation.Choose(ceilings("workspace"), isolation.Subject{Profile: "lax"}); isolation.IsBeyond(invalid) || invalid == nil {
		t.Errorf("a profile that is not allowed is taken for a rule beyond the ceiling: %v", invalid)
	}
}

func TestAPolicyOfOthersThatReopensIsFound(t *testing.T) {
	pod := map[string]string{"app": "web", keys.Sandbox: "true", keys.EgressProfile: "public"}
	policy := func(name, spec string) networkingv1.NetworkPolicy {
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte("metadata: {name: "+name+"}\nspec: "+spec), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const wide = "egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"
	ours := policy("agent-sandbox-egress-public", "{podSelector: {matchLabels: {"+keys.Sandbox+": 'true', "+keys.EgressProfile+": public}}, "+wide+"}")
	ours.Labels = map[string]string{keys.ManagedBy: isolation.Manager}
	forged := policy("agent-sandbox-egress-none", "{podSelector: {}, "+wide+"}")
	forged.Labels = ours.Labels
	harmless := policy("harmless", "{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}]}]}")
	cases := map[string]struct {
		policies []networkingv1.NetworkPolicy
		reopened config.Reopened
		ceiling  string
		// want is the name of the policy and a part of what is too much.
		want, beyond string
	}{
		"none":                            {ceiling: "public"},
		"one of ours":                     {policies: []networkingv1.NetworkPolicy{ours}, ceiling: "public"},
		"one like ours, for other Pods":   {policies: []networkingv1.NetworkPolicy{forged}, ceiling: "public", want: "agent-sandbox-egress-none", beyond: "10.0.0.0/8"},
		"one below the ceiling":           {policies: []networkingv1.NetworkPolicy{harmless}, ceiling: "public"},
		"one for other Pods":              {policies: []networkingv1.NetworkPolicy{policy("p", "{podSelector: {matchLabels: {app: db}}, "+wide+"}")}, ceiling: "public"},
		"one that spares Sandboxes":       {policies: []networkingv1.NetworkPolicy{policy("p", "{podSelector: {matchExpressions: [{key: "+keys.Sandbox+", operator: DoesNotExist}]}, "+wide+"}")}, ceiling: "public"},
		"one of the other direction":      {policies: []networkingv1.NetworkPolicy{policy("p", "{podSelector: {}, policyTypes: [Ingress], "+wide+"}")}, ceiling: "public"},
		"the second":                      {policies: []networkingv1.NetworkPolicy{harmless, policy("wide", "{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], "+wide+"}")}, ceiling: "public", want: "wide", beyond: "10.0.0.0/8"},
		"everything":                      {policies: []networkingv1.NetworkPolicy{policy("wide", "{podSelector: {}, egress: [{}]}")}, ceiling: "public", want: "wide", beyond: "everything"},
		"the address of a node":           {policies: []networkingv1.NetworkPolicy{policy("wide", "{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]}")}, ceiling: "public", want: "wide", beyond: "198.51.100.7"},
		"a private one, written as IPv6":  {policies: []networkingv1.NetworkPolicy{policy("wide", "{podSelector: {}, egress: [{to: [{ipBlock: {cidr: '::ffff:10.0.0.0/104'}}]}]}")}, ceiling: "public", want: "wide", beyond: "::ffff:10.0.0.0/104"},
		"in a tier that only tells of it": {policies: []networkingv1.NetworkPolicy{policy("wide", "{podSelector: {}, egress: [{}]}")}, ceiling: "public", reopened: config.ReopenedReport},
		"in a tier that has no ceiling":   {policies: []networkingv1.NetworkPolicy{policy("wide", "{podSelector: {}, egress: [{}]}")}},
		"Pods of the ceiling's":           {policies: []networkingv1.NetworkPolicy{policy("git", "{podSelector: {}, egress: [{to: [{podSelector: {matchLabels: {app: git}}}]}]}")}, ceiling: "workspace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := ceilings(tc.ceiling)
			p.Cluster.CIDRs = []string{"198.51.100.7/32"}
			tier := p.Tiers[p.DefaultTier]
			tier.Egress.Reopened = tc.reopened
			got, beyond := isolation.Reopened(p, p.DefaultTier, tier, pod, tc.policies)
			if got != tc.want || (beyond != nil) != (tc.want != "") {
				t.Fatalf("Reopened() = %q, %v, want %q", got, beyond, tc.want)
			}
			if beyond != nil && !strings.Contains(beyond.Error(), tc.beyond) {
				t.Errorf("Reopened() says %v, want it to name %q", beyond, tc.beyond)
			}
		})
	}
}
