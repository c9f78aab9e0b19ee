// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// TestTheFirstRuleOfTheReadmeWorks loads the rule that the README writes, runs the test that it
// writes for it, and configures it as it does.
func TestTheFirstRuleOfTheReadmeWorks(t *testing.T) {
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```rego\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	configuration := regexp.MustCompile("(?s)```yaml\n(rules:.*?)```").FindStringSubmatch(string(content))
	exceptions := regexp.MustCompile("(?s)```yaml\n(overrides:.*?)```").FindStringSubmatch(string(content))
	if len(blocks) != 2 || configuration == nil || exceptions == nil {
		t.Fatalf("%d blocks of Rego, configuration %q, exceptions %q", len(blocks), configuration, exceptions)
	}
	rule, test := blocks[0][1], blocks[1][1]

	modules := maps.Clone(regoModules(t))
	for name, text := range map[string]string{"team-label.rego": rule, "team-label_test.rego": test} {
		modules[name] = ast.MustParseModuleWithOpts(text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		modules[name].Package.Location.File = name
	}
	ran := 0
	for _, r := range runRego(t, modules, cover.New()) {
		if r.Package == "data.policies.acme.team_label_test" {
			ran++
			if !r.Pass() {
				t.Errorf("%s does not pass", r.Name)
			}
		}
	}
	if want := strings.Count(test, "\ntest_"); ran != want {
		t.Errorf("%d tests ran, want %d", ran, want)
	}

	library, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := engine.ParseConfiguration("policy.yaml", []byte(configuration[1]+exceptions[1]))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	report, err := e.Load(context.Background(), append(library, engine.Module{
		Source: "configmap/agent-sandbox-system/acme-policies", Name: "team-label.rego", Content: []byte(rule),
	}), cfg)
	if err != nil || len(report.Broken) > 0 {
		t.Errorf("the rule does not load: %v %v", err, report.Broken)
	}
}

// TestTheReadmeTellsHowToTakeARuleAway holds the commands to the key that the webhook reads: without it a
// deletion changes nothing.
func TestTheReadmeTellsHowToTakeARuleAway(t *testing.T) {
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## Take a rule away\n")
	section, _, _ = strings.Cut(section, "\n## ")
	confirm, remove := strings.Index(section, "annotate configmap acme-policies "+keys.RemovalConfirmed+"=true"), strings.Index(section, "delete configmap acme-policies")
	if !found || confirm < 0 || remove < confirm {
		t.Errorf("want the annotation %s and then the deletion, got:\n%s", keys.RemovalConfirmed, section)
	}
}
