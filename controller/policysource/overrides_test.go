// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestOverridesAndExemptionsOfEveryConfigMapCount(t *testing.T) {
	l := newLoader(t)
	l.step(t, "a", map[string]string{
		"no-root-name.rego": teamRule,
		ConfigurationKey: "overrides: [{name: a, namespaceSelector: {matchLabels: {stage: a}}, rules: {no-root-name: {enforcement: Warn}}}]\n" +
			`exemptions: [{rule: no-root-name, namespaces: [x], reason: r, owner: o, expires: "9999-12-31"}]`,
	})
	l.step(t, "b", map[string]string{
		ConfigurationKey: "overrides: [{name: b, namespaceSelector: {matchLabels: {stage: b}}, rules: {no-root-name: {enforcement: Audit}}}]",
	})
	for namespace, want := range map[string]engine.Enforcement{"a": engine.Warn, "b": engine.Audit, "c": engine.Deny, "x": engine.Audit} {
		pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "root"}}}}
		d := l.Engine.Evaluate(t.Context(), engine.Input{
			Operation: "CREATE", Kind: engine.KindSandbox, Pod: pod, Object: map[string]any{"spec": map[string]any{"podTemplate": pod}},
			Namespace: engine.NamespaceInfo{Name: namespace, Labels: map[string]string{"stage": namespace}},
		})
		var got []engine.Enforcement
		for _, f := range d.Findings {
			if f.Rule == "no-root-name" {
				got = append(got, f.Enforcement)
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("namespace %s: %v, want %s", namespace, got, want)
		}
	}
}
