// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const valid = `
defaultTier: standard
tiers:
  standard:
    podSecurity: {deny: baseline, warn: restricted, version: v1.37}
    runtimeClass: {classes: [gvisor]}
    dropCapabilities: [NET_RAW]
    egress: {profile: public, allowed: [none]}
    creates: [Sandbox, SandboxClaim]
egressProfiles:
  none: {}
  public: {dns: true, internet: true}
cluster:
  cidrs: [10.244.0.0/16]
  dns: {namespace: kube-system, podLabels: {k8s-app: kube-dns}}
router: {namespace: agent-sandbox-system, podLabels: {app: sandbox-router}}
`

func TestParse(t *testing.T) {
	cases := map[string]struct {
		old, new string
		// want are parts of the error: the field, the value and the remedy.
		want []string
	}{
		"the valid one":           {},
		"a key that nobody knows": {"defaultTier: standard", "defaultTeir: standard", []string{"unknown field", "defaultTeir"}},
		"a default tier that does not exist": {
			"defaultTier: standard", "defaultTier: lax", []string{"defaultTier", "\"lax\"", "standard"},
		},
		"a level that does not exist": {
			"deny: baseline", "deny: basline", []string{"tiers[standard].podSecurity.deny", "basline", "restricted"},
		},
		"a version that is none": {"v1.37", "1.37.2", []string{"tiers[standard].podSecurity.version", "1.37.2", "v1.37"}},
		"a required RuntimeClass without a list": {
			"{classes: [gvisor]}", "{required: true}", []string{"tiers[standard].runtimeClass.classes", "at least one"},
		},
		"a mode that is none": {"    creates", "    hardening: {seccomp: Off}\n    creates", []string{"hardening.seccomp", "Require"}},
		"every mode of hardening": {
			"    creates", "    hardening: {token: Require, serviceLinks: Open, userNamespaces: Default, seccomp: Open, " +
				"privilegeEscalation: Require, capabilities: Require, rootFilesystem: Require}\n    creates", nil,
		},
		"capabilities that must be dropped, and none that is": {
			"[NET_RAW]", "[]\n    hardening: {capabilities: Require}", []string{"tiers[standard].dropCapabilities", "at least one"},
		},
		"resources that fit together": {
			"    creates", "    resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}, max: {memory: 2Gi, ephemeral-storage: 1e9}}\n    creates", nil,
		},
		"a request above the limit": {
			"    creates", "    resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}\n    creates",
			[]string{"resources.requests[memory]", "2Gi", "at most 1Gi, the amount of limits"},
		},
		"a limit above the ceiling": {
			"    creates", "    resources: {limits: {cpu: 3}, max: {cpu: 2500m}}\n    creates",
			[]string{"resources.limits[cpu]", "3", "at most 2500m, the amount of max"},
		},
		"a ceiling of nothing":    {"    creates", "    resources: {max: {cpu: 0}}\n    creates", []string{"resources.max[cpu]", "above 0"}},
		"a resource of its own":   {"    creates", "    resources: {max: {example.com/gpu: 1}}\n    creates", []string{"example.com/gpu", "ephemeral-storage"}},
		"an amount that is none":  {"    creates", "    resources: {max: {cpu: many}}\n    creates", []string{"quantities must match"}},
		"a ServiceAccount":        {"    creates", "    serviceAccounts: [agent]\n    creates", nil},
		"a ServiceAccount's name": {"    creates", "    serviceAccounts: [Agent!]\n    creates", []string{"serviceAccounts[0]", "Agent!"}},
		"a longest lifetime":      {"    creates", "    maxLifetime: 24h\n    creates", nil},
		"a lifetime below 0":      {"    creates", "    maxLifetime: -1h\n    creates", []string{"maxLifetime", "-1h", "24h"}},
		"a level to record":       {"warn: restricted", "audit: restricted", nil},
		"a level to record that does not exist": {
			"warn: restricted", "audit: strict", []string{"podSecurity.audit", "strict", "restricted"},
		},
		"a profile that does not exist": {"allowed: [none]", "allowed: [nothing]", []string{"egress.allowed[0]", "nothing", "none", "public"}},
		"a profile whose name is no label": {
			"none: {}", "none: {}\n  No_Way: {}", []string{"egressProfiles[No_Way]", "No_Way", "small letters"},
		},
		"a tier whose name is no label": {
			"  standard:\n", "  standard.eu: {podSecurity: {deny: baseline, version: v1.37}, egress: {profile: public}, creates: []}\n  standard:\n",
			[]string{"tiers[standard.eu]", "standard.eu", "small letters"},
		},
		"a RuntimeClass with more to say": {"[gvisor]", "[{name: gvisor, hostUsers: false}, kata]", nil},
		"a RuntimeClass with something that nobody knows": {
			"[gvisor]", "[{name: gvisor, users: none}]", []string{"unknown field", "users"},
		},
		"a RuntimeClass whose name is none":      {"[gvisor]", "[{hostUsers: false}]", []string{"runtimeClass.classes[0]", "name of a RuntimeClass"}},
		"a RuntimeClass that is preferred twice": {"[gvisor]", "[gvisor, kata, gvisor]", []string{"runtimeClass.classes[2]", "Duplicate", "gvisor"}},
		"a range with host bits":                 {"10.244.0.0/16", "10.244.0.1/16", []string{"cluster.cidrs[0]", "10.244.0.1/16", "write 10.244.0.0/16"}},
		"a range that is none":                   {"10.244.0.0/16", "010.0.0.0/8", []string{"cluster.cidrs[0]", "010.0.0.0/8"}},
		"a rule that allows everything": {
			"none: {}", "none: {rules: [{ports: [{port: 443}]}]}", []string{"egressProfiles[none].rules[0]", "would allow everything"},
		},
		"a kind that nobody can create":   {"[Sandbox, SandboxClaim]", "[Pod]", []string{"creates[0]", "Pod", "SandboxClaim"}},
		"no adoption":                     {"    creates", "    adoption: Refuse\n    creates", nil},
		"an adoption that nobody knows":   {"    creates", "    adoption: Never\n    creates", []string{"tiers[standard].adoption", "Never", "Allow", "Refuse"}},
		"a domain of labels that is none": {"router: {", "claims: {labelDomains: [Team!]}\nrouter: {", []string{"claims.labelDomains[0]", "Team!", "lowercase"}},
		"a domain of labels":              {"router: {", "claims: {labelDomains: [team.example.com]}\nrouter: {", nil},
		"a router without labels":         {"podLabels: {app: sandbox-router}", "podLabels: {}", []string{"router.podLabels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := valid
			if tc.old != "" {
				if text = strings.Replace(valid, tc.old, tc.new, 1); text == valid {
					t.Fatalf("the valid configuration has no %q", tc.old)
				}
			}
			_, err := config.Parse([]byte(text))
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

func TestTierOf(t *testing.T) {
	p, err := config.Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]bool{"": true, "standard": true, "unknown": false} {
		if name, _, known := p.TierOf(label); known != want {
			t.Errorf("TierOf(%q) = %q, known %t, want known %t", label, name, known, want)
		}
	}
}
