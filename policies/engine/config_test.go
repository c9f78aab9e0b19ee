// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestConfigurationErrors(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"No YAML":               {"rules: [", "policy.yaml: not a YAML mapping"},
		"A list":                {"- a", "policy.yaml: not a YAML mapping"},
		"A key twice":           {"rules: {dra: {}, dra: {}}", "already set"},
		"An unknown key":        {"rule: {}", `policy.yaml: unknown field "rule"; known are rules, overrides and exemptions`},
		"Rules as a list":       {"rules: [dra]", `policy.yaml: rules is ["dra"]; write a mapping`},
		"A rule as text":        {"rules: {dra: Deny}", "policy.yaml: rules.dra is Deny; write a mapping"},
		"A key of a rule":       {"rules: {dra: {enforcment: Deny}}", `policy.yaml: rules.dra: unknown field "enforcment"; known are enforcement`},
		"An enforcement":        {"rules: {dra: {enforcement: deny}}", `policy.yaml: rules.dra.enforcement is "deny"; use one of Off, Audit, Warn, Deny`},
		"Off without quotes":    {"rules: {dra: {enforcement: off}}", `policy.yaml: rules.dra.enforcement is "false"; use one of Off, Audit, Warn, Deny, with "Off" in quotes`},
		"Parameters as a list":  {"rules: {dra: {parameters: [a]}}", `policy.yaml: rules.dra.parameters is ["a"]; write a mapping`},
		"A parameter":           {"rules: {dra: {parameters: {allowed: []}}}", "policy.yaml: rules.dra.parameters"},
		"A parameter's type":    {"rules: {dra: {parameters: {allowedTemplates: all}}}", "policy.yaml: rules.dra.parameters.allowedTemplates is all: got string, want array; known are allowedTemplates"},
		"An entry's type":       {"rules: {dra: {parameters: {allowedTemplates: [a, 5]}}}", "policy.yaml: rules.dra.parameters.allowedTemplates.1 is 5: got number, want string"},
		"A number out of range": {"rules: {projected-identity: {parameters: {maxExpirationSeconds: 5}}}", "maxExpirationSeconds is 5: minimum"},
		"A pattern that RE2 does not know": {
			`rules: {literal-secrets: {parameters: {valuePatterns: ["a(?=b)"]}}}`, "rules.literal-secrets.parameters.valuePatterns.0 is a(?=b): 'a(?=b)' is not valid regex",
		},
		"A quantity that is none": {
			"rules: {max-resources: {parameters: {pod: {memory: lots}}}}", "rules.max-resources.parameters.pod.memory is lots: 'lots' is not valid quantity: is not a quantity such as",
		},
		"A range that is none": {"rules: {egress-any: {parameters: {requiredExcepts: [999.0.0.0/8]}}}", "requiredExcepts.0 is 999.0.0.0/8: '999.0.0.0/8' is not valid cidr"},
		"A range with another first address": {
			"rules: {egress-any: {parameters: {requiredExcepts: [10.0.0.1/8]}}}", "is not valid cidr: its first address is 10.0.0.0",
		},
		"A quantity of the wrong type": {"rules: {storage-size: {parameters: {maxSize: 7}}}", "storage-size.parameters.maxSize is 7: got number, want string"},
		"A mapping for a text":         {"rules: {storage-size: {parameters: {maxSize: {a: b}}}}", "storage-size.parameters.maxSize is {"},
		"Null":                         {"rules: {dra: {parameters: {allowedTemplates: null}}}", "got null, want array"},
		"A registry with a path": {
			"rules: {registry-allowed: {parameters: {registries: [docker.io/library]}}}", "registries.0 is docker.io/library",
		},
		"An allow-list without an entry": {
			"rules: {registry-allowed: {enforcement: Warn}}",
			"policy.yaml: rules.registry-allowed.enforcement is Warn but no entry is in registries, repositories; add one",
		},
		"Parameters of Pod Security": {"rules: {pss-baseline: {parameters: {version: v1.30}}}", "the rule has none"},
		"Several faults": {
			"rules: {dra: {enforcement: x}, nosuch: {enforcement: z}}", `rules.nosuch.enforcement is "z"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := engine.ParseConfiguration("policy.yaml", []byte(tc.text))
			if err == nil {
				_, err = newEngine(t).Load(context.Background(), libraryModules(t), cfg)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestConfigurationChangesRules(t *testing.T) {
	e := loaded(t, `
rules:
  privileged: {enforcement: Audit}
  host-namespaces: {enforcement: "Off"}
  no-latest: {parameters: {tags: [latest, edge]}}
  registry-allowed: {enforcement: Deny, parameters: {registries: [docker.io]}}
  pss-baseline: {enforcement: Warn}
`)
	in := requestOf(t, "hostPID: true",
		`containers: [{name: a, image: "evil.com/a:edge", securityContext: {privileged: true}, resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
	in.Tier = nil
	d := e.Evaluate(context.Background(), in)
	privileged := "spec.podTemplate.spec.containers[0].securityContext.privileged"
	want := []brief{
		{"registry-allowed", "Deny", "spec.podTemplate.spec.containers[0].image", "evil.com/a:edge"},
		{"no-latest", "Warn", "spec.podTemplate.spec.containers[0].image", "evil.com/a:edge"},
		{"pss-baseline", "Warn", privileged, "true"},
		{"pss-baseline", "Warn", "spec.podTemplate.spec.hostPID", "true"},
		{"privileged", "Audit", privileged, "true"},
	}
	// pss-restricted keeps its own default where there is no tier.
	if diff := cmp.Diff(want, briefs(withoutRule(d.Findings, "pss-restricted"))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if got := len(d.Denials()) + len(d.Warnings()) + len(d.Audits()); got != len(d.Findings) || len(d.Audits()) != 1 {
		t.Errorf("denials, warnings and audits do not add up: %s", show(t, d))
	}
	for _, info := range e.Catalogue() {
		if info.ID == "no-latest" {
			if diff := cmp.Diff([]any{"latest", "edge"}, info.Parameters["tags"]); diff != "" {
				t.Errorf("parameters in the catalogue (-want +got):\n%s", diff)
			}
		}
	}
}

func withoutRule(findings []engine.Finding, rule string) []engine.Finding {
	var rest []engine.Finding
	for _, f := range findings {
		if f.Rule != rule {
			rest = append(rest, f)
		}
	}
	return rest
}

func TestConfigurationMayNameARuleThatIsBroken(t *testing.T) {
	unreadable := extra("a.rego", "no rego")
	report := load(t, newEngine(t), "rules: {a: {enforcement: Deny}}", unreadable)
	if len(report.Broken) != 1 {
		t.Errorf("report: %s", show(t, report))
	}
}
