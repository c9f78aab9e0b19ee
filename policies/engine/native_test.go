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

func TestFindingsOfGoAreThoseOfARule(t *testing.T) {
	denied := engine.Finding{Rule: engine.RuleForgedOwner, Severity: engine.High, Enforcement: engine.Deny, Message: "a forged owner"}
	warned := engine.Finding{Rule: engine.RuleReservedMetadata, Severity: engine.Low, Enforcement: engine.Warn, Message: "a label is dropped"}
	for name, tc := range map[string]struct {
		configuration string
		want          []string
	}{
		"By default":                     {"", []string{"forged-owner Deny", "reserved-metadata Warn"}},
		"A rule that warns":              {"rules: {forged-owner: {enforcement: Warn}}", []string{"forged-owner Warn", "reserved-metadata Warn"}},
		"A rule that is off":             {"rules: {forged-owner: {enforcement: 'Off'}}", []string{"reserved-metadata Warn"}},
		"A warning is never more":        {"rules: {reserved-metadata: {enforcement: Deny}}", []string{"forged-owner Deny", "reserved-metadata Warn"}},
		"A warning that is only audited": {"rules: {reserved-metadata: {enforcement: Audit}}", []string{"forged-owner Deny", "reserved-metadata Audit"}},
	} {
		in := requestOf(t)
		in.Native = []engine.Finding{denied, warned}
		e := loaded(t, tc.configuration)
		var got []string
		for _, f := range e.Evaluate(context.Background(), in).Findings {
			got = append(got, f.Rule+" "+string(f.Enforcement))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	in := requestOf(t)
	in.Native = []engine.Finding{{Rule: "privileged", Enforcement: engine.Audit}}
	if d := loaded(t, "").Evaluate(context.Background(), in); !d.Denied() {
		t.Error("a finding of a rule that Go does not decide is silent")
	}
}

// What the cluster does not enforce too can be relaxed in a namespace, and for a while.
func TestRulesOfGoThatAreNoFloorAreRelaxedLikeOthers(t *testing.T) {
	for configuration, want := range map[string]string{
		"": "Warn",
		"rules: {reference: {enforcement: Audit}}": "Audit",
		"overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, rules: {reference: {enforcement: Audit}}}]": "Audit",
		"overrides: [{name: a, namespaceSelector: {matchLabels: {a: c}}, rules: {reference: {enforcement: Audit}}}]": "Warn",
		`exemptions: [{rule: reference, namespaces: [team], reason: r, owner: o, expires: "2099-01-31"}]`:            "Audit",
	} {
		in := requestOf(t)
		in.Namespace = engine.NamespaceInfo{Name: "team", Labels: map[string]string{"a": "b"}}
		in.Native = []engine.Finding{{Rule: engine.RuleReference, Severity: engine.Low, Enforcement: engine.Warn, Message: "no pool"}}
		found := loaded(t, configuration).Evaluate(context.Background(), in).Findings
		if len(found) != 1 || string(found[0].Enforcement) != want {
			t.Errorf("%q: %s, want %s", configuration, show(t, found), want)
		}
	}
}

func TestRulesOfGoAreConfiguredLikeOthers(t *testing.T) {
	for text, want := range map[string]string{
		"rules: {forged-owner: {parameters: {a: 1}}}":                                                                  "rules.forged-owner.parameters: the rule has none",
		"overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, rules: {forged-owner: {enforcement: Warn}}}]": "the cluster itself enforces it",
		`exemptions: [{rule: reserved-metadata, namespaces: [a], reason: r, owner: o, expires: "2027-01-31"}]`:         "the cluster itself enforces it",
	} {
		_, err := newEngine(t).Load(context.Background(), libraryModules(t), configured(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	broken := load(t, newEngine(t), "", ruleFile("forged-owner", "deny contains 1 if input.kind == \"x\"\n")).Broken
	if len(broken) != 1 {
		t.Errorf("a module takes the id of a rule of Go: %v", broken)
	}
}
