// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func TestRulesOfProfiles(t *testing.T) {
	cases := map[string]struct {
		rule string
		// want are parts of the error; none for a rule that is right.
		want []string
	}{
		"ranges and ports":                {"{cidrs: [192.0.2.0/24, '2001:db8::/32'], except: [192.0.2.128/25], ports: [{port: 443}, {port: 8000, endPort: 9000, protocol: UDP}]}", nil},
		"Pods by selectors":               {"{namespaceSelector: {matchLabels: {team: a}}, podSelector: {matchExpressions: [{key: app, operator: In, values: [git]}]}, ports: [{port: https}]}", nil},
		"Services":                        {"{services: [{namespace: tools, name: git, ports: [443, ssh]}, {namespace: tools, name: mirror}]}", nil},
		"Services beside ranges":          {"{cidrs: [192.0.2.0/24], ports: [{port: 443}], services: [{namespace: tools, name: git}]}", nil},
		"nothing":                         {"{}", []string{"rules[0]", "would allow everything"}},
		"a range with host bits":          {"{cidrs: [192.0.2.1/24]}", []string{"cidrs[0]", "192.0.2.1/24", "write 192.0.2.0/24"}},
		"IPv4 that is written as IPv6":    {"{cidrs: ['::ffff:192.0.2.0/120']}", []string{"cidrs[0]", "::ffff:192.0.2.0/120", "write 192.0.2.0/24"}},
		"such an exception":               {"{cidrs: ['2001:db8::/32'], except: ['::ffff:192.0.2.0/120']}", []string{"except[0]", "::ffff:192.0.2.0/120"}},
		"an exception that is no range":   {"{cidrs: [192.0.2.0/24], except: [all]}", []string{"except[0]", "all"}},
		"an exception outside":            {"{cidrs: [192.0.2.0/24], except: [198.51.100.0/25]}", []string{"except[0]", "198.51.100.0/25", "within none"}},
		"an exception that is the range":  {"{cidrs: [192.0.2.0/24], except: [192.0.2.0/24]}", []string{"except[0]", "within none"}},
		"an exception of the other kind":  {"{cidrs: [0.0.0.0/0], except: ['fc00::/7']}", []string{"except[0]", "fc00::/7"}},
		"a key that is no label's":        {"{podSelector: {matchLabels: {'a b': c}}}", []string{"podSelector.matchLabels", "a b"}},
		"an operator that does not exist": {"{namespaceSelector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}", []string{"namespaceSelector.matchExpressions[0].operator", "Like"}},
		"an operator without values":      {"{podSelector: {matchExpressions: [{key: a, operator: In}]}}", []string{"podSelector.matchExpressions[0].values"}},
		"a protocol that does not exist":  {"{cidrs: [192.0.2.0/24], ports: [{port: 1, protocol: ICMP}]}", []string{"ports[0].protocol", "ICMP", "TCP"}},
		"port 0":                          {"{cidrs: [192.0.2.0/24], ports: [{port: 0}]}", []string{"ports[0].port", "between 1 and 65535"}},
		"a port beyond all":               {"{cidrs: [192.0.2.0/24], ports: [{port: 65536}]}", []string{"ports[0].port", "65536"}},
		"a port that is no name":          {"{podSelector: {}, ports: [{port: 'https!'}]}", []string{"ports[0].port", "https!"}},
		"the name of an address's port":   {"{cidrs: [192.0.2.0/24], ports: [{port: https}]}", []string{"ports[0].port", "https", "write a number"}},
		"a range that ends too early":     {"{cidrs: [192.0.2.0/24], ports: [{port: 9000, endPort: 8000}]}", []string{"ports[0].endPort", "8000"}},
		"a range that begins with a name": {"{podSelector: {}, ports: [{port: https, endPort: 8000}]}", []string{"ports[0].endPort", "begins with a number"}},
		"ports of Services, misplaced":    {"{services: [{namespace: tools, name: git}], ports: [{port: 443}]}", []string{"rules[0].ports", "services[].ports"}},
		"a Service without a namespace":   {"{services: [{name: git}]}", []string{"services[0].namespace", "name the namespace"}},
		"a Service by its DNS name":       {"{services: [{namespace: tools, name: git.tools.svc}]}", []string{"services[0].name", "git.tools.svc"}},
		"a port of a Service that is none": {
			"{services: [{namespace: tools, name: git, ports: [-1]}]}", []string{"services[0].ports[0]", "-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(strings.Replace(valid, "none: {}", "none: {rules: ["+tc.rule+"]}", 1)))
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("Parse() = %v, want an error: %t", err, len(tc.want) > 0)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Parse() = %q, want it to name %q", err, part)
				}
			}
		})
	}
}

func TestResolversOfProfiles(t *testing.T) {
	cases := map[string]struct {
		profile string
		// want are parts of the error; none for a profile that is right.
		want []string
	}{
		"addresses of both families": {"{internet: true, nameservers: [192.0.2.53, '2001:db8::53']}", nil},
		"a name":                     {"{nameservers: [dns.test]}", []string{"nameservers[0]", "dns.test", "write an IP address"}},
		"IPv4 written as IPv6":       {"{nameservers: ['::ffff:192.0.2.53']}", []string{"nameservers[0]", "::ffff:192.0.2.53", "write 192.0.2.53"}},
		"a zone":                     {"{nameservers: ['fe80::1%eth0']}", []string{"nameservers[0]", "write an IP address"}},
		"beside the cluster's":       {"{dns: true, nameservers: [192.0.2.53]}", []string{"nameservers", "remove these, or dns"}},
		"more than a Pod can have":   {"{nameservers: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4]}", []string{"nameservers", "at most 3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(strings.Replace(valid, "none: {}", "none: "+tc.profile, 1)))
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("Parse() = %v, want an error: %t", err, len(tc.want) > 0)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Parse() = %q, want it to name %q", err, part)
				}
			}
		})
	}
}

// The policies of profiles and of templates share the names of a namespace.
func TestAProfileThatIsNamedAsAPolicyOfATemplateIsRefused(t *testing.T) {
	_, err := config.Parse([]byte(strings.Replace(valid, "none: {}", "none: {}\n  web-network-policy: {}", 1)))
	if err == nil || !strings.Contains(err.Error(), "egressProfiles[web-network-policy]") {
		t.Errorf("Parse() = %v, want the name refused", err)
	}
}
