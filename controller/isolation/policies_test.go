// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

func TestFloorDeniesEverySandboxEverything(t *testing.T) {
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{keys.Sandbox: "true"}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}
	got := isolation.Floor("team-a")
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("Floor() (-want +got):\n%s", diff)
	}
	if got.Namespace != "team-a" || got.Name != "agent-sandbox-deny-all" || got.OwnerReferences != nil {
		t.Errorf("Floor() is %s/%s owned by %v, want team-a/agent-sandbox-deny-all of nobody", got.Namespace, got.Name, got.OwnerReferences)
	}
}

func TestEveryPolicyIsOursAndSelectsOnlySandboxes(t *testing.T) {
	choice := isolation.Choice{Profile: "public", Ingress: isolation.IngressNamespace}
	policies := isolation.Policies("team-a", choice, platform())
	if policies[0].Name != isolation.FloorName {
		t.Errorf("the first policy is %s, want the floor", policies[0].Name)
	}
	for _, policy := range policies {
		if policy.Labels[keys.ManagedBy] != isolation.Manager {
			t.Errorf("%s has labels %v, want it marked as ours", policy.Name, policy.Labels)
		}
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(choice.PodLabels())) {
			t.Errorf("%s does not select a Pod with %v", policy.Name, choice.PodLabels())
		}
		if selector.Matches(labels.Set{"app": "database"}) || selector.Empty() {
			t.Errorf("%s selects Pods that are no Sandboxes", policy.Name)
		}
	}
}

func TestProfileLetsOnlyTheRouterIn(t *testing.T) {
	want := []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "agent-sandbox-system"}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sandbox-router"}},
	}}}}
	if diff := cmp.Diff(want, isolation.Profile("team-a", "none", platform()).Spec.Ingress); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
}

func TestNamespaceIngressOpensNoWayOut(t *testing.T) {
	got := isolation.NamespaceIngress("team-a").Spec
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, got.PolicyTypes); diff != "" {
		t.Errorf("policy types (-want +got):\n%s", diff)
	}
	from := got.Ingress[0].From[0]
	if from.NamespaceSelector != nil || from.PodSelector == nil || len(got.Egress) > 0 {
		t.Errorf("NamespaceIngress() = %+v, want only Pods of the same namespace let in", got)
	}
}

func TestProfileEgress(t *testing.T) {
	udp, tcp, dns := corev1.ProtocolUDP, corev1.ProtocolTCP, intstr.FromInt32(53)
	dnsPorts := []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &dns}, {Protocol: &tcp, Port: &dns}}
	dnsPods := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "kube-system"}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
	}
	https, last := intstr.FromInt32(443), int32(450)
	database := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "database"}}
	cases := map[string]struct {
		profile   config.EgressProfile
		resolvers []string
		want      []networkingv1.NetworkPolicyEgressRule
	}{
		"an empty profile opens nothing": {},
		"DNS opens port 53 of the cluster's servers": {
			profile: config.EgressProfile{DNS: true},
			want:    []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{dnsPods}, Ports: dnsPorts}},
		},
		"DNS opens port 53 of resolvers that are no Pods, each as one address": {
			profile:   config.EgressProfile{DNS: true},
			resolvers: []string{"169.254.20.10", "fd00::10"},
			want: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{
					dnsPods,
					{IPBlock: &networkingv1.IPBlock{CIDR: "169.254.20.10/32"}},
					{IPBlock: &networkingv1.IPBlock{CIDR: "fd00::10/128"}},
				},
				Ports: dnsPorts,
			}},
		},
		"resolvers of the profile's own, and not the cluster's": {
			profile: config.EgressProfile{Nameservers: []string{"192.0.2.53", "2001:db8::53"}}, resolvers: []string{"169.254.20.10"},
			want: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.53/32"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::53/128"}},
				},
				Ports: dnsPorts,
			}},
		},
		"a rule opens its ranges, less its exceptions, on its ports": {
			profile: config.EgressProfile{Rules: []config.EgressRule{{
				CIDRs:  []string{"203.0.113.0/24", "2001:db8::/32"},
				Except: []string{"203.0.113.8/32", "2001:db8:1::/48"},
				Ports:  []config.EgressPort{{Port: https, EndPort: &last}, {Port: https, Protocol: "UDP"}},
			}}},
			want: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: "203.0.113.0/24", Except: []string{"203.0.113.8/32"}}},
					{IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::/32", Except: []string{"2001:db8:1::/48"}}},
				},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &https, EndPort: &last}, {Protocol: &udp, Port: &https}},
			}},
		},
		"a rule opens Pods of its namespace when it selects no other": {
			profile: config.EgressProfile{Rules: []config.EgressRule{{PodSelector: database}}},
			want:    []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: database}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := platform()
			p.EgressProfiles["mine"] = tc.profile
			p.Cluster.DNSAddresses = tc.resolvers
			got := isolation.Profile("team-a", "mine", p).Spec.Egress
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
		})
	}
}

// internetBlocks are the address blocks that the profile public opens.
func internetBlocks(t *testing.T, clusterCIDRs ...string) []*networkingv1.IPBlock {
	t.Helper()
	p := platform()
	p.EgressProfiles["internet"] = config.EgressProfile{Internet: true}
	p.Cluster.CIDRs = clusterCIDRs
	var blocks []*networkingv1.IPBlock
	for _, rule := range isolation.Profile("team-a", "internet", p).Spec.Egress {
		if len(rule.Ports) > 0 {
			t.Errorf("the internet is bound to ports %v", rule.Ports)
		}
		for _, peer := range rule.To {
			blocks = append(blocks, peer.IPBlock)
		}
	}
	return blocks
}

func TestInternetLeavesOutWhatIsNotTheInternet(t *testing.T) {
	blocks := internetBlocks(t, "203.0.113.0/24", "2001:db8:5::/48", "10.244.0.0/16")
	cases := map[string]struct {
		address string
		open    bool
	}{
		"a public address":                     {"198.51.100.7", true},
		"a public IPv6 address":                {"2606:4700::1111", true},
		"a neighbour of a special range":       {"100.128.0.1", true},
		"a private address, 10":                {"10.1.2.3", false},
		"a private address, 172.16":            {"172.31.255.255", false},
		"a private address, 192.168":           {"192.168.1.1", false},
		"the metadata service":                 {"169.254.169.254", false},
		"a metadata service of another cloud":  {"100.100.100.200", false},
		"a metadata service of a third cloud":  {"192.0.0.192", false},
		"a platform service of a fourth cloud": {"168.63.129.16", false},
		"the metadata service, IPv6":           {"fd00:ec2::254", false},
		"carrier-grade NAT":                    {"100.64.0.1", false},
		"benchmarks":                           {"198.19.0.1", false},
		"benchmarks, IPv6":                     {"2001:2:0:1::1", false},
		"loopback":                             {"127.0.0.1", false},
		"loopback, IPv6":                       {"::1", false},
		"this network":                         {"0.0.0.0", false},
		"multicast":                            {"224.0.0.1", false},
		"multicast, IPv6":                      {"ff02::1", false},
		"broadcast":                            {"255.255.255.255", false},
		"link-local, IPv6":                     {"fe80::1", false},
		"a private address in NAT64":           {"64:ff9b::a00:1", false},
		"a private address in local NAT64":     {"64:ff9b:1::a00:1", false},
		"a private address, mapped":            {"::ffff:a00:1", false},
		"a private address, translated":        {"::ffff:0:a00:1", false},
		"a private address, compatible":        {"::a00:1", false},
		"beside those":                         {"100::1", true},
		"a private address in 6to4":            {"2002:a00:1::1", false},
		"a private address in Teredo":          {"2001:0:a00:1::1", false},
		"beside Teredo":                        {"2001:1::1", true},
		"a range of the cluster":               {"203.0.113.9", false},
		"a range of the cluster, IPv6":         {"2001:db8:5::9", false},
		"beside the range of the cluster":      {"2001:db8:6::9", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			open := slices.ContainsFunc(blocks, func(b *networkingv1.IPBlock) bool { return allows(b, tc.address) })
			if open != tc.open {
				t.Errorf("%s is open: %t, want %t", tc.address, open, tc.open)
			}
		})
	}
}

func allows(block *networkingv1.IPBlock, address string) bool {
	ip := netip.MustParseAddr(address)
	return netip.MustParsePrefix(block.CIDR).Contains(ip) &&
		!slices.ContainsFunc(block.Except, func(except string) bool { return netip.MustParsePrefix(except).Contains(ip) })
}

// The apiserver refuses an exception that is no true part of its range, and reads
// addresses the way package net does.
func TestExceptionsAreTrueParts(t *testing.T) {
	for _, block := range internetBlocks(t, "10.244.0.0/16", "fd00:10::/56", "203.0.113.0/24") {
		_, outer, err := net.ParseCIDR(block.CIDR)
		if err != nil {
			t.Fatal(err)
		}
		for _, except := range block.Except {
			_, inner, err := net.ParseCIDR(except)
			if err != nil {
				t.Fatal(err)
			}
			outerBits, _ := outer.Mask.Size()
			if innerBits, _ := inner.Mask.Size(); !outer.Contains(inner.IP) || innerBits <= outerBits {
				t.Errorf("%s is no true part of %s", except, block.CIDR)
			}
		}
		if slices.Contains(block.Except, "10.244.0.0/16") || slices.Contains(block.Except, "fd00:10::/56") {
			t.Errorf("exceptions of %s list a range inside another: %v", block.CIDR, block.Except)
		}
	}
}

func TestAFamilyThatIsAllTheClustersStaysClosed(t *testing.T) {
	for _, block := range internetBlocks(t, "::/0") {
		if block.CIDR != "0.0.0.0/0" {
			t.Errorf("%s is open, want IPv4 only", block.CIDR)
		}
	}
}

func TestSelectingGivesThePoliciesThatAPodWasMadeWith(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		want   []*networkingv1.NetworkPolicy
	}{
		"of a profile": {
			isolation.Choice{Profile: "public"}.PodLabels(),
			isolation.Policies("team-a", isolation.Choice{Profile: "public"}, platform()),
		},
		"of a profile with the namespace let in": {
			isolation.Choice{Profile: "none", Ingress: isolation.IngressNamespace}.PodLabels(),
			isolation.Policies("team-a", isolation.Choice{Profile: "none", Ingress: isolation.IngressNamespace}, platform()),
		},
		"of a template": {
			isolation.Choice{Template: "python"}.PodLabels(),
			[]*networkingv1.NetworkPolicy{isolation.Floor("team-a")},
		},
		"of a profile that is no more": {
			isolation.Choice{Profile: "Former"}.PodLabels(),
			[]*networkingv1.NetworkPolicy{isolation.Floor("team-a")},
		},
		"of no Sandbox": {map[string]string{keys.EgressProfile: "public"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, isolation.Selecting("team-a", tc.labels, platform())); diff != "" {
				t.Errorf("Selecting() (-want +got):\n%s", diff)
			}
		})
	}
}
