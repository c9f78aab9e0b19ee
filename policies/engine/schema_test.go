// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// A rule is held to the schemas of our kinds when it is loaded: what it misspells would never fire.
func TestRulesAreTypeCheckedAgainstOurKinds(t *testing.T) {
	cases := map[string]struct {
		kinds, condition string
		// want are parts of the reason; none when the rule loads.
		want []string
	}{
		"A misspelt field":                      {"Sandbox", "input.object.spec.podTempalte", []string{"a.rego:13", "undefined ref: input.object.spec.podTempalte", `"podTemplate"`}},
		"A misspelt field of the Pod":           {"Sandbox", "input.pod.spec.hostNetwrok", []string{"a.rego:13", "hostNetwrok"}},
		"A misspelt field of each container":    {"Sandbox", "input.pod.spec.containers[_].imag", []string{"imag"}},
		"One by a declared variable":            {"Sandbox", "{ some c in input.pod.spec.containers; c.imag }", []string{"c.imag"}},
		"A field of the review that is none":    {"Sandbox", "input.usr", []string{"undefined ref: input.usr", "no such field"}},
		"A boolean compared with text":          {"Sandbox", `input.pod.spec.hostNetwork == "true"`, []string{"a.rego:13", "match error", "boolean", "different types"}},
		"Text compared with a number":           {"Sandbox", "input.pod.spec.containers[_].image == 5", []string{"match error"}},
		"A field of another kind":               {"Sandbox", "input.object.spec.warmPoolRef", []string{"warmPoolRef"}},
		"The template of a Sandbox":             {"Sandbox", "input.template", []string{"undefined ref: input.template"}},
		"A misspelt field of a claim":           {"SandboxClaim", "input.object.spec.warmPolRef", []string{"warmPolRef"}},
		"A misspelt field of a pool":            {"SandboxWarmPool", "input.object.spec.replica", []string{"replica"}},
		"A misspelt field of the old object":    {"Sandbox", "input.old_object.spec.servce", []string{"servce"}},
		"A field of one of two kinds":           {"Sandbox, SandboxClaim", "input.object.spec.warmPoolRef.name", nil},
		"A field of neither of two kinds":       {"Sandbox, SandboxClaim", "input.object.spec.replicas", []string{"replicas"}},
		"The template of a claim":               {"SandboxClaim", "input.template.spec.podTemplate.spec.hostPID", nil},
		"An amount, which is text or a number":  {"Sandbox", "input.pod.spec.containers[_].resources.limits.cpu == 5", nil},
		"Any label":                             {"Sandbox", `input.object.metadata.labels.team == "a"`, nil},
		"Any label of the namespace":            {"Sandbox", `input.namespace.labels["stage"] == "a"`, nil},
		"Any data of the environment":           {"Sandbox", `input.environment.regions[_] == "a"`, nil},
		"A comparison of the right type":        {"Sandbox", "input.pod.spec.hostNetwork == true", nil},
		"A field that a variable names":         {"Sandbox", "{ some name in {\"hostPID\", \"hostIPC\"}; input.pod.spec[name] == true }", nil},
		"What may hold anything in the helpers": {"Sandbox", "{ some c in data.lib.containers.by_path; c.whatever }", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			condition := strings.TrimSuffix(strings.TrimPrefix(tc.condition, "{ "), " }")
			m := ruleFile("a", "deny contains \"x\" if {\n\t"+strings.ReplaceAll(condition, "; ", "\n\t")+"\n}\n")
			m.Content = []byte(strings.Replace(string(m.Content), "[Sandbox]", "["+tc.kinds+"]", 1))
			report, err := newEngine(t).Load(context.Background(), append(libraryModules(t), m), engine.Configuration{})
			if err != nil {
				t.Fatal(err)
			}
			if len(tc.want) == 0 {
				if len(report.Broken) > 0 {
					t.Errorf("does not load: %s", report.Broken[0].Reason)
				}
				return
			}
			if len(report.Broken) != 1 {
				t.Fatal("it loads")
			}
			for _, part := range tc.want {
				if !strings.Contains(report.Broken[0].Reason, part) {
					t.Errorf("reason lacks %q: %s", part, report.Broken[0].Reason)
				}
			}
		})
	}
}
