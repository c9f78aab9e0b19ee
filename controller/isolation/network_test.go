// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func makeService(edits ...func(*corev1.ServiceSpec)) *corev1.Service {
	service := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "git"},
		Ports: []corev1.ServicePort{
			{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443), Protocol: corev1.ProtocolTCP},
			{Name: "ssh", Port: 22, TargetPort: intstr.FromString("sshd")},
			{Name: "log", Port: 514, Protocol: corev1.ProtocolUDP},
		},
	}}
	for _, edit := range edits {
		edit(&service.Spec)
	}
	return service
}

func TestServicesBecomeThePodsBehindThem(t *testing.T) {
	all := []config.EgressPort{
		{Protocol: "TCP", Port: intstr.FromInt32(8443)}, {Protocol: "TCP", Port: intstr.FromString("sshd")}, {Protocol: "UDP", Port: intstr.FromInt32(514)},
	}
	cases := map[string]struct {
		ports   []intstr.IntOrString
		service *corev1.Service
		want    []config.EgressPort
		// why is a part of the explanation of a Service that opens nothing.
		why string
	}{
		"all its ports":           {nil, makeService(), all, ""},
		"a port by number":        {[]intstr.IntOrString{intstr.FromInt32(443)}, makeService(), all[:1], ""},
		"ports by name":           {[]intstr.IntOrString{intstr.FromString("log"), intstr.FromString("ssh")}, makeService(), all[1:], ""},
		"a headless Service":      {nil, makeService(func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }), all, ""},
		"a port that it has not":  {[]intstr.IntOrString{intstr.FromInt32(443), intstr.FromInt32(8443)}, makeService(), nil, "no port 8443: choose among https, ssh, log"},
		"no such Service":         {nil, nil, nil, "no such Service"},
		"a Service without Pods":  {nil, makeService(func(s *corev1.ServiceSpec) { s.Selector = nil }), nil, "no selector"},
		"a Service without ports": {nil, makeService(func(s *corev1.ServiceSpec) { s.Ports = nil }), nil, "no ports"},
		"a name of the world": {nil, makeService(func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.Selector = corev1.ServiceTypeExternalName, "git.example.com", map[string]string{"app": "git"}
		}), nil, "git.example.com"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "tools", Name: "git"}
			services := map[types.NamespacedName]*corev1.Service{}
			if tc.service != nil {
				services[key] = tc.service
			}
			platform := &config.Platform{EgressProfiles: map[string]config.EgressProfile{
				"git": {DNS: true, Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git", Ports: tc.ports}}}}},
			}}
			resolved, gaps := Resolve(platform, Network{Services: services})
			want := config.EgressProfile{DNS: true}
			for _, gap := range gaps {
				want.Unresolved = append(want.Unresolved, "Service tools/git opens nothing: "+gap.Why)
			}
			if tc.why == "" {
				want.Rules = []config.EgressRule{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "tools"}},
					PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "git"}},
					Ports:             tc.want,
				}}
			}
			if diff := cmp.Diff(want, resolved.EgressProfiles["git"], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
			if (len(gaps) == 1) != (tc.why != "") || len(gaps) == 1 && (gaps[0].Profile != "git" || gaps[0].Service != key || !strings.Contains(gaps[0].Why, tc.why)) {
				t.Errorf("gaps %+v, want one that says %q", gaps, tc.why)
			}
			if len(platform.EgressProfiles["git"].Rules[0].Services) != 1 {
				t.Error("the configuration that was given has changed")
			}
		})
	}
}

// What a rule allows besides its Services stays what it was.
func TestARuleKeepsItsOtherPeers(t *testing.T) {
	rule := config.EgressRule{CIDRs: []string{"192.0.2.0/24"}, Ports: []config.EgressPort{{Port: intstr.FromInt32(80)}}}
	mixed := rule
	mixed.Services = []config.EgressService{{Namespace: "tools", Name: "git"}}
	platform := &config.Platform{EgressProfiles: map[string]config.EgressProfile{"x": {Rules: []config.EgressRule{mixed}}}}
	key := types.NamespacedName{Namespace: "tools", Name: "git"}
	resolved, gaps := Resolve(platform, Network{Services: map[types.NamespacedName]*corev1.Service{key: makeService()}})
	rules := resolved.EgressProfiles["x"].Rules
	if len(gaps) != 0 || len(rules) != 2 {
		t.Fatalf("%d rules and the gaps %v, want 2 and none", len(rules), gaps)
	}
	if diff := cmp.Diff(rule, rules[0]); diff != "" {
		t.Errorf("the other peers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.NamespacedName{key}, NamedServices(platform)); diff != "" {
		t.Errorf("NamedServices() (-want +got):\n%s", diff)
	}
}

// Addresses of nodes and the apiserver are closed to the profile public, in both
// families; those that are closed already change nothing.
func TestAddressesOfTheClusterAreClosed(t *testing.T) {
	platform := &config.Platform{
		EgressProfiles: map[string]config.EgressProfile{"public": {Internet: true}},
		Cluster:        config.Cluster{CIDRs: []string{"34.118.224.0/20"}},
	}
	var ranges []netip.Prefix
	for _, text := range []string{"10.1.2.3/32", "34.118.225.1/32", "203.0.113.7/32", "2001:db8::7/128", "fd00::1/128", "203.0.113.7/32", "198.51.100.0/24"} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	resolved, _ := Resolve(platform, Network{Ranges: ranges})
	want := []string{"34.118.224.0/20", "198.51.100.0/24", "2001:db8::7/128", "203.0.113.7/32"}
	if diff := cmp.Diff(want, resolved.Cluster.CIDRs); diff != "" {
		t.Errorf("ranges of the cluster (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"34.118.224.0/20"}, platform.Cluster.CIDRs); diff != "" {
		t.Errorf("the configuration that was given (-want +got):\n%s", diff)
	}
	for _, text := range []string{"203.0.113.7", "2001:db8::7", "198.51.100.200", "34.118.224.1"} {
		address := netip.MustParseAddr(text)
		for _, peer := range Profile("team-a", "public", resolved).Spec.Egress[0].To {
			if open(address, peer.IPBlock.CIDR, peer.IPBlock.Except) {
				t.Errorf("%s is open by %s", address, peer.IPBlock.CIDR)
			}
		}
	}
	if block := Profile("team-a", "public", resolved).Spec.Egress[0].To[0].IPBlock; !open(netip.MustParseAddr("203.0.113.8"), block.CIDR, block.Except) {
		t.Error("the address beside a node's is closed as well")
	}
}

func open(address netip.Addr, cidr string, excepts []string) bool {
	if !netip.MustParsePrefix(cidr).Contains(address) {
		return false
	}
	for _, except := range excepts {
		if netip.MustParsePrefix(except).Contains(address) {
			return false
		}
	}
	return true
}
