// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// ofTenant is a NetworkPolicy of a tenant's own.
func ofTenant(selector, rules string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: mine, namespace: tenant}\n" +
		"spec: {podSelector: " + selector + ", policyTypes: [Egress], egress: " + rules + "}"
}

// In a tier with a ceiling a tenant's own policies open no more for what may be a
// Sandbox; other Pods are his to open.
func TestATenantsPoliciesStayBelowTheCeiling(t *testing.T) {
	const policies = "networkpolicies.v1.networking.k8s.io"
	const everything = "[{}]"
	dns := `[{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}]`
	in := func(tier, selector, rules string) write {
		return write{resource: policies, object: ofTenant(selector, rules), tier: tier, floor: true}
	}
	block := func(text string) string { return "[{to: [{ipBlock: {" + text + "}}]}]" }
	r := render(t, install{files: []string{"prod"}})
	backstop := backstop(t, r)
	cases := map[string]struct {
		write
		// want is what the refusal names; empty for none.
		want string
	}{
		"everything":                              {in("standard", "{}", everything), "spec.egress[0] (everything)"},
		"everything, for some Pods":               {in("standard", "{matchLabels: {app: web}}", everything), "spec.egress[0]"},
		"everything, for Pods that are not ours":  {in("standard", "{matchExpressions: [{key: "+keys.Sandbox+", operator: DoesNotExist}]}", everything), ""},
		"the same, by another word":               {in("standard", "{matchExpressions: [{key: "+keys.Sandbox+", operator: NotIn, values: ['true']}]}", everything), ""},
		"a word that lets ours in":                {in("standard", "{matchExpressions: [{key: "+keys.Sandbox+", operator: NotIn, values: ['false']}]}", everything), "spec.egress[0]"},
		"a part of the internet":                  {in("standard", "{}", block("cidr: 198.51.100.0/24")), ""},
		"a part of the internet, IPv6":            {in("standard", "{}", block("cidr: '2606:4700::/32'")), ""},
		"the metadata service":                    {in("standard", "{}", block("cidr: 169.254.169.254/32")), "169.254.169.254/32"},
		"the same, written as IPv6":               {in("standard", "{}", block("cidr: '::ffff:169.254.169.254/128'")), "::ffff:169.254.169.254/128"},
		"a private range, written as IPv6":        {in("standard", "{}", block("cidr: '::ffff:10.0.0.0/104'")), "::ffff:10.0.0.0/104"},
		"an exception, written as IPv6":           {in("standard", "{}", block("cidr: '2606:4700::/32', except: ['::ffff:10.0.0.0/104']")), "2606:4700::/32"},
		"all of IPv4":                             {in("standard", "{}", block("cidr: 0.0.0.0/0")), "0.0.0.0/0"},
		"all of IPv4 but half of what is closed":  {in("standard", "{}", block("cidr: 0.0.0.0/0, except: [10.0.0.0/8]")), "0.0.0.0/0"},
		"a range that leaves out what is closed":  {in("standard", "{}", block("cidr: 192.0.0.0/8, except: [192.0.0.0/24, 192.168.0.0/16]")), ""},
		"a range that leaves out too little":      {in("standard", "{}", block("cidr: 192.0.0.0/8, except: [192.0.0.0/24, 192.168.0.0/17]")), "192.0.0.0/8"},
		"a range of IPv6 with the unique local":   {in("standard", "{}", block("cidr: 'fc00::/6'")), "fc00::/6"},
		"Pods of the namespace":                   {in("standard", "{}", "[{to: [{podSelector: {matchLabels: {app: git}}}], ports: [{port: 443}]}]"), ""},
		"Pods of every namespace":                 {in("standard", "{}", "[{to: [{namespaceSelector: {}}]}]"), "spec.egress[0]"},
		"the second rule":                         {in("standard", "{}", "[{to: [{podSelector: {}}]}, {to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"), "spec.egress[1] (10.0.0.0/8)"},
		"a peer beside one that may be":           {in("standard", "{}", "[{to: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}]}]"), "spec.egress[0] (10.0.0.0/8)"},
		"the cluster's DNS":                       {in("restricted", "{}", dns), ""},
		"the cluster's DNS, more of its ports":    {in("restricted", "{}", strings.Replace(dns, "53, protocol: TCP", "53, endPort: 54, protocol: TCP", 1)), "spec.egress[0]"},
		"the cluster's DNS, all its ports":        {in("restricted", "{}", strings.Replace(dns, ", ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]", "", 1)), "spec.egress[0]"},
		"the cluster's DNS, by a name of a port":  {in("restricted", "{}", strings.Replace(dns, "port: 53, protocol: TCP", "port: dns, protocol: TCP", 1)), "spec.egress[0]"},
		"the internet where there is none":        {in("restricted", "{}", block("cidr: 198.51.100.0/24")), "198.51.100.0/24"},
		"everything in a tier without a ceiling":  {in("trusted", "{}", everything), ""},
		"everything, by the default tier":         {write{resource: policies, object: ofTenant("{}", everything), floor: true}, "more than tier standard allows"},
		"everything, by a tier without a name":    {write{resource: policies, object: ofTenant("{}", everything), emptyTier: true}, "more than tier standard allows"},
		"everything where there are no Sandboxes": {write{resource: policies, object: ofTenant("{}", everything)}, ""},
		"a change of a policy that was there":     {write{resource: policies, object: ofTenant("{}", everything), old: ofTenant("{}", "[]"), tier: "standard"}, "spec.egress[0]"},
		"metadata of a policy that was there":     {write{resource: policies, object: ofTenant("{}", everything), old: ofTenant("{}", everything), tier: "standard"}, ""},
		"everything, by an administrator":         {write{may: "bypass backstop/egress", resource: policies, object: ofTenant("{}", everything), tier: "standard"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := refusals(t, backstop, tc.write)
			if (len(got) == 1) != (tc.want != "") || len(got) == 1 && (!strings.HasPrefix(got[0], "egress-ceiling: ") || !strings.Contains(got[0], tc.want)) {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
		})
	}
}

// A ceiling with resolvers of its own lets a tenant open these, on their port, and not the
// cluster's.
func TestTheCeilingHasTheResolversOfItsProfile(t *testing.T) {
	backstop := backstop(t, render(t, install{set: []string{
		"platform.egressProfiles.own.nameservers={192.0.2.53,2001:db8::53}", "platform.tiers.restricted.egress.ceiling=own",
	}}))
	policy := func(peer, port string) write {
		rules := "[{to: [{" + peer + "}], ports: [{port: " + port + ", protocol: UDP}]}]"
		return write{resource: "networkpolicies.v1.networking.k8s.io", object: ofTenant("{}", rules), tier: "restricted", floor: true}
	}
	cases := map[string]struct {
		write
		refused bool
	}{
		"a resolver":             {policy("ipBlock: {cidr: 192.0.2.53/32}", "53"), false},
		"a resolver, IPv6":       {policy("ipBlock: {cidr: '2001:db8::53/128'}", "53"), false},
		"its neighbour":          {policy("ipBlock: {cidr: 192.0.2.54/32}", "53"), true},
		"another port":           {policy("ipBlock: {cidr: 192.0.2.53/32}", "54"), true},
		"the cluster's resolver": {policy("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}", "53"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refusals(t, backstop, tc.write); (len(got) == 1) != tc.refused {
				t.Errorf("refused with %q, want that: %t", got, tc.refused)
			}
		})
	}
}
