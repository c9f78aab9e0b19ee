// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Overrides and exemptions of the values are those that the engine works with.
func TestOverridesAndExemptionsReachTheEngine(t *testing.T) {
	rules := rulesOf(t, render(t, install{
		set: []string{
			"policies.overrides[0].name=lab", "policies.overrides[0].namespaceSelector.matchLabels.stage=lab",
			"policies.overrides[0].rules.no-latest.enforcement=Deny",
			"policies.exemptions[0].rule=no-latest", "policies.exemptions[0].namespaces={old}", "policies.exemptions[0].reason=Moves.",
			"policies.exemptions[0].owner=ann",
		},
		setString: []string{"policies.exemptions[0].expires=9999-12-31"},
	}))
	pod := map[string]any{"spec": map[string]any{
		"automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "a", "image": "a:latest"}},
	}}
	got := map[string]engine.Enforcement{}
	for name, stage := range map[string]string{"lab": "lab", "team": "", "old": "lab"} {
		d := rules.Evaluate(t.Context(), engine.Input{
			Operation: "CREATE", Kind: engine.KindSandbox, Pod: pod, Object: map[string]any{"spec": map[string]any{"podTemplate": pod}},
			Namespace: engine.NamespaceInfo{Name: name, Labels: map[string]string{"stage": stage}},
		})
		for _, f := range d.Findings {
			if f.Rule == "no-latest" {
				got[name] = f.Enforcement
			}
		}
	}
	want := map[string]engine.Enforcement{"lab": engine.Deny, "team": engine.Warn, "old": engine.Audit}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("no-latest by namespace (-want +got):\n%s", diff)
	}
}
