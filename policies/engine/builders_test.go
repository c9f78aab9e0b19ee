// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// sandbox is a Sandbox that no rule of the library denies in a tier without demands.
const sandbox = `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: agent-workspace}
spec:
  service: true
  volumeClaimTemplates:
  - metadata: {name: workspace-volume}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}
  podTemplate:
    metadata: {}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: workspace
        image: python:3.12-slim
        command: [sh, -c, sleep infinity]
        resources: {limits: {cpu: "1", memory: 1Gi}}
        volumeMounts: [{name: workspace-volume, mountPath: /workspace}]
`

// trusted is the JSON of a tier that asks for baseline only.
func trusted() map[string]any {
	return map[string]any{"podSecurity": map[string]any{"deny": "baseline", "version": "v1.37"}}
}

// requestOf makes the input for the Sandbox, with changes in YAML to its Pod's spec.
func requestOf(tb testing.TB, changes ...string) engine.Input {
	tb.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(sandbox), &object); err != nil {
		tb.Fatal(err)
	}
	pod := object["spec"].(map[string]any)["podTemplate"].(map[string]any)
	for _, change := range changes {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(change), &fields); err != nil {
			tb.Fatal(err)
		}
		maps.Copy(pod["spec"].(map[string]any), fields)
	}
	return engine.Input{
		Operation: "CREATE", Kind: engine.KindSandbox, Object: object, Pod: pod, PodPath: "spec.podTemplate",
		Source: engine.SourceAdmission, Tier: trusted(), TierName: "trusted",
	}
}

func libraryModules(tb testing.TB) []engine.Module {
	tb.Helper()
	modules, err := policies.Library()
	if err != nil {
		tb.Fatal(err)
	}
	return modules
}

func newEngine(tb testing.TB, opts ...engine.Option) *engine.Engine {
	tb.Helper()
	e, err := engine.New(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// loaded returns an engine with the library, a configuration and more modules.
func loaded(tb testing.TB, configuration string, extra ...engine.Module) *engine.Engine {
	tb.Helper()
	e := newEngine(tb)
	load(tb, e, configuration, extra...)
	return e
}

func load(tb testing.TB, e *engine.Engine, configuration string, extra ...engine.Module) engine.LoadReport {
	tb.Helper()
	report, err := e.Load(context.Background(), append(libraryModules(tb), extra...), configured(tb, configuration))
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func configured(tb testing.TB, text string) engine.Configuration {
	tb.Helper()
	cfg, err := engine.ParseConfiguration("policy.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// extra is a module of a ConfigMap.
func extra(name, content string) engine.Module {
	return engine.Module{Source: "configmap/platform/extra", Name: name, Content: []byte(content)}
}

// ruleFile is a module with METADATA and a body.
func ruleFile(id, body string) engine.Module {
	return extra(id+".rego", header(id, "Deny")+body)
}

func header(id, enforcement string) string {
	return `# METADATA
# title: Test
# description: A rule of a test.
# custom:
#   id: ` + id + `
#   severity: high
#   enforcement: "` + enforcement + `"
#   remediation: Do not.
#   kinds: [Sandbox]
package policies.extra.` + id + "\n\n"
}

// brief is what tests compare of a finding.
type brief struct {
	Rule, Enforcement, Field, Value string
}

func briefs(findings []engine.Finding) []brief {
	var found []brief
	for _, f := range findings {
		found = append(found, brief{f.Rule, string(f.Enforcement), f.Field, f.Value})
	}
	return found
}

func show(tb testing.TB, value any) string {
	tb.Helper()
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}
