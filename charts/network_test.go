// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func ports(list []networkingv1.NetworkPolicyPort) []int {
	var numbers []int
	for _, p := range list {
		numbers = append(numbers, p.Port.IntValue())
	}
	return numbers
}

// Our own Pods need the apiserver and names; the webhook needs to be called; nobody
// needs the clean-up.
func TestOurOwnNetworkPolicies(t *testing.T) {
	if n := kinds(render(t, install{}))["NetworkPolicy"]; n != 0 {
		t.Errorf("%d NetworkPolicies by default, want none", n)
	}
	set := []string{"networkPolicy.enabled=true", "networkPolicy.apiServerCIDRs={192.0.2.1/32}"}
	cases := map[string]struct {
		set  []string
		want map[string][][]int
	}{
		"with metrics": {set, map[string][][]int{
			"agent-sandbox-controller": {{8080}}, "agent-sandbox-webhook": {{9443}, {8080}}, "agent-sandbox-cleanup": nil,
		}},
		"without metrics": {append(slices.Clone(set), "metrics.enabled=false"), map[string][][]int{
			"agent-sandbox-controller": nil, "agent-sandbox-webhook": {{9443}}, "agent-sandbox-cleanup": nil,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string][][]int{}
			for _, p := range all[*networkingv1.NetworkPolicy](render(t, install{set: tc.set})) {
				got[p.Name] = nil
				for _, rule := range p.Spec.Ingress {
					got[p.Name] = append(got[p.Name], ports(rule.Ports))
				}
				if len(p.Spec.PolicyTypes) != 2 {
					t.Errorf("%s covers %v, want both directions", p.Name, p.Spec.PolicyTypes)
				}
				checkEgress(t, p)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ports that are open (-want +got):\n%s", diff)
			}
		})
	}
}

func checkEgress(t *testing.T, p *networkingv1.NetworkPolicy) {
	t.Helper()
	if len(p.Spec.Egress) != 2 {
		t.Fatalf("%s has %d rules of egress, want the apiserver and DNS", p.Name, len(p.Spec.Egress))
	}
	apiserver, dns := p.Spec.Egress[0], p.Spec.Egress[1]
	if got := ports(apiserver.Ports); !slices.Equal(got, []int{443, 6443}) || len(apiserver.To) != 1 || apiserver.To[0].IPBlock.CIDR != "192.0.2.1/32" {
		t.Errorf("%s reaches the apiserver at %v of %v", p.Name, got, apiserver.To)
	}
	if got := ports(dns.Ports); !slices.Equal(got, []int{53, 53}) {
		t.Errorf("%s resolves names at %v", p.Name, got)
	}
}

// Monitoring finds what is served, and nothing when nothing is.
func TestMonitoring(t *testing.T) {
	r := render(t, install{set: everything})
	for _, o := range r.objects {
		if o.GetKind() != "ServiceMonitor" {
			continue
		}
		service := named[*corev1.Service](t, r, o.GetName()+"-metrics")
		if !strings.Contains(o.text, "port: "+service.Spec.Ports[0].Name+"\n") {
			t.Errorf("%s reads no port of Service %s:\n%s", o, service.Name, o.text)
		}
		if got := containerPort(selectedBy(t, r, service), service.Spec.Ports[0].TargetPort.StrVal); got != 8080 {
			t.Errorf("Service %s leads to port %d, want 8080", service.Name, got)
		}
	}
	if n := kinds(r)["ServiceMonitor"]; n != 2 {
		t.Errorf("%d ServiceMonitors, want 2", n)
	}
	off := render(t, install{set: []string{"metrics.enabled=false", "metrics.serviceMonitor.enabled=true"}})
	if kinds(off)["ServiceMonitor"] != 0 || kinds(off)["Service"] != 1 {
		t.Errorf("without metrics there are %d ServiceMonitors and %d Services", kinds(off)["ServiceMonitor"], kinds(off)["Service"])
	}
}
