// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// platform has two tiers, one of which says who may connect.
func platform() *config.Platform {
	return &config.Platform{
		DefaultTier: "standard",
		Tiers: map[string]config.Tier{
			"standard": {Egress: config.TierEgress{Profile: "public", Allowed: []string{"none", "dns-only"}}},
			"locked":   {Egress: config.TierEgress{Profile: "none"}, Ingress: "router"},
			"open":     {Egress: config.TierEgress{Profile: "public"}, Ingress: "namespace"},
		},
		EgressProfiles: map[string]config.EgressProfile{
			"none": {}, "dns-only": {DNS: true}, "public": {DNS: true, Internet: true},
		},
		Cluster: config.Cluster{
			DNS: config.Peer{Namespace: "kube-system", PodLabels: map[string]string{"k8s-app": "kube-dns"}},
		},
		Router: config.Peer{Namespace: "agent-sandbox-system", PodLabels: map[string]string{"app": "sandbox-router"}},
	}
}

func TestChoose(t *testing.T) {
	cases := map[string]struct {
		subject isolation.Subject
		want    isolation.Choice
		// refused are parts of the error: the field, the value and the remedy.
		refused []string
	}{
		"a namespace without a tier has the default tier and its profile": {
			want: isolation.Choice{Tier: "standard", Profile: "public", Ingress: isolation.IngressRouter},
		},
		"a Sandbox may choose a profile that its tier allows": {
			subject: isolation.Subject{Profile: "dns-only"},
			want:    isolation.Choice{Tier: "standard", Profile: "dns-only", Ingress: isolation.IngressRouter},
		},
		"a Sandbox may name the profile that it would have anyway": {
			subject: isolation.Subject{Profile: "public"},
			want:    isolation.Choice{Tier: "standard", Profile: "public", Ingress: isolation.IngressRouter},
		},
		"what a template makes is kept apart by the template's policy": {
			subject: isolation.Subject{Profile: "dns-only", Template: "python"},
			want:    isolation.Choice{Tier: "standard", Profile: "dns-only", Ingress: isolation.IngressRouter, Template: "python"},
		},
		"a profile that the tier does not allow is refused with those it does": {
			subject: isolation.Subject{TierLabel: "locked", Profile: "public"},
			refused: []string{"metadata.annotations[" + keys.EgressProfile + "]", `"public"`, `tier "locked" allows none`, "remove the annotation"},
		},
		"a tier that does not exist is refused with those that do": {
			subject: isolation.Subject{TierLabel: "gold"},
			refused: []string{"namespace.metadata.labels[" + keys.Tier + "]", `"gold"`, "locked, open, standard", `remove the label for "standard"`},
		},
		"a bare Sandbox with a Service is open to its namespace": {
			subject: isolation.Subject{Bare: true, Service: true},
			want:    isolation.Choice{Tier: "standard", Profile: "public", Ingress: isolation.IngressNamespace},
		},
		"a claimed Sandbox with a Service is open to the router only": {
			subject: isolation.Subject{Service: true},
			want:    isolation.Choice{Tier: "standard", Profile: "public", Ingress: isolation.IngressRouter},
		},
		"a bare Sandbox without a Service is open to the router only": {
			subject: isolation.Subject{Bare: true},
			want:    isolation.Choice{Tier: "standard", Profile: "public", Ingress: isolation.IngressRouter},
		},
		"a tier that says router means it": {
			subject: isolation.Subject{TierLabel: "locked", Bare: true, Service: true},
			want:    isolation.Choice{Tier: "locked", Profile: "none", Ingress: isolation.IngressRouter},
		},
		"a tier that says namespace means every Sandbox": {
			subject: isolation.Subject{TierLabel: "open"},
			want:    isolation.Choice{Tier: "open", Profile: "public", Ingress: isolation.IngressNamespace},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := isolation.Choose(platform(), tc.subject)
			if (err != nil) != (len(tc.refused) > 0) {
				t.Fatalf("Choose() error = %v, want one: %t", err, len(tc.refused) > 0)
			}
			for _, part := range tc.refused {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Choose() error = %q, want it to name %q", err, part)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Choose() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodLabelsAreSelectedByThePoliciesOfTheChoice(t *testing.T) {
	for _, ingress := range []isolation.Ingress{isolation.IngressRouter, isolation.IngressNamespace} {
		t.Run(string(ingress), func(t *testing.T) {
			choice := isolation.Choice{Tier: "standard", Profile: "dns-only", Ingress: ingress}
			var want []string
			for _, policy := range isolation.Policies("team-a", choice, platform()) {
				want = append(want, policy.Name)
			}
			if diff := cmp.Diff(want, isolation.SelectedBy(choice.PodLabels())); diff != "" {
				t.Errorf("SelectedBy() (-want +got):\n%s", diff)
			}
		})
	}
	if got := isolation.SelectedBy(map[string]string{keys.EgressProfile: "public"}); got != nil {
		t.Errorf("SelectedBy() of a Pod that is no Sandbox's = %v, want none", got)
	}
}
