// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// parametersOfNaive are what a naive engine passes on as it was written.
var parametersOfNaive = map[string]any{"max": "5", "allowed": []any{}}

// naively prepares OPA in the obvious way: a compiler for the modules, and capabilities given to the query.
func naively(tb testing.TB, modules ...engine.Module) rego.PreparedEvalQuery {
	tb.Helper()
	files := map[string]string{}
	for _, m := range modules {
		files[m.Name] = string(m.Content)
	}
	compiler, err := ast.CompileModules(files)
	if err != nil {
		tb.Fatalf("the module does not even compile: %v", err)
	}
	capabilities := ast.CapabilitiesForThisVersion()
	capabilities.Builtins = nil
	query, err := rego.New(
		rego.Compiler(compiler), rego.Capabilities(capabilities), rego.Query("data.policies.extra.a.deny"),
	).PrepareForEval(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return query
}

// naiveInput is what a naive engine passes on.
func naiveInput(in engine.Input) rego.EvalOption {
	return rego.EvalInput(map[string]any{
		"kind": in.Kind, "object": in.Object, "pod": in.Pod, "operation": in.Operation, "parameters": parametersOfNaive,
	})
}

// naiveVerdict allows whoever has no finding in the set.
func naiveVerdict(tb testing.TB, module engine.Module, in engine.Input) string {
	tb.Helper()
	results, err := naively(tb, module).Eval(context.Background(), naiveInput(in))
	if err != nil {
		tb.Fatal(err)
	}
	if len(results) == 0 {
		return allowed
	}
	if findings, _ := results[0].Expressions[0].Value.([]any); len(findings) == 0 {
		return allowed
	}
	return refused
}

// verdict is refused where one of the findings says so for the reason.
func verdict(findings []engine.Finding, because func(engine.Finding) bool) string {
	for _, f := range findings {
		if f.Enforcement == engine.Deny && because(f) {
			return refused
		}
	}
	return allowed
}

// refusing is a rule that means to refuse the object: ours refuses it because the rule is at fault, for that reason.
func refusing(rule, reason string, changes ...string) func(t *testing.T) (naive, ours string) {
	return func(t *testing.T) (naive, ours string) {
		t.Helper()
		module, in := ruleFile("a", rule+"\n"), requestOf(t, changes...)
		e := newEngine(t)
		loadAlone(t, e, module)
		ours = verdict(e.Evaluate(context.Background(), in).Findings, func(f engine.Finding) bool {
			return f.Failure && strings.Contains(f.Message, reason)
		})
		return naiveVerdict(t, module, in), ours
	}
}

// naiveRule is a rule as it is written first, an object that it refuses, another one that it lets through, and the rule of
// the library that does not.
type naiveRule struct {
	deny string
	// meant and given change the spec of the Sandbox's Pod; of other kinds they are the networkPolicy of a template, or
	// fields of a claim.
	kind, meant, given string
	// configuration switches the rule of the library on.
	configuration, rule string
}

func (n naiveRule) try(t *testing.T) (naive, ours string) {
	t.Helper()
	module := ruleFile("a", "deny contains \"x\" if {\n\t"+strings.ReplaceAll(n.deny, "; ", "\n\t")+"\n}\n")
	if got := naiveVerdict(t, module, n.request(t, n.meant)); got != refused {
		t.Errorf("the naive rule does not even refuse what it is meant for: %s", n.meant)
	}
	in := n.request(t, n.given)
	ours = verdict(loaded(t, n.configuration).Evaluate(context.Background(), in).Findings, func(f engine.Finding) bool {
		return f.Rule == n.rule && !f.Failure
	})
	return naiveVerdict(t, module, in), ours
}

func (n naiveRule) request(tb testing.TB, text string) engine.Input {
	tb.Helper()
	if n.kind == "" {
		return requestOf(tb, text)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		tb.Fatal(err)
	}
	in := ofKind(requestOf(tb), n.kind)
	if n.kind == engine.KindSandboxTemplate {
		in.Object["spec"].(map[string]any)["networkPolicy"] = given
		return in
	}
	maps.Copy(in.Object, given)
	return in
}

// confined is a container that restricted admits, with more in its context.
func confined(context string) string {
	return "containers: [{name: a, image: 'a:1', securityContext: {allowPrivilegeEscalation: false, " + context + "}}]"
}

// level asks for a level alone, of a template that no apiserver has validated as a Pod.
func level(asked api.Level, changes ...string) func(t *testing.T) (naive, ours string) {
	return func(t *testing.T) (naive, ours string) {
		t.Helper()
		evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			t.Fatal(err)
		}
		in := requestOf(t, changes...)
		in.Tier = map[string]any{"podSecurity": map[string]any{"deny": string(asked), "version": "v1.37"}}
		naive = refused
		if policy.AggregateCheckResults(evaluator.EvaluatePod(
			api.LevelVersion{Level: asked, Version: api.MajorMinorVersion(1, 37)}, &metav1.ObjectMeta{}, podSpec(t, in))).Allowed {
			naive = allowed
		}
		return naive, verdict(loaded(t, "").Evaluate(context.Background(), in).Findings, func(engine.Finding) bool { return true })
	}
}

func podSpec(tb testing.TB, in engine.Input) *corev1.PodSpec {
	tb.Helper()
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Pod["spec"].(map[string]any), &spec); err != nil {
		tb.Fatal(err)
	}
	return &spec
}

// withoutMetadata judges a Pod that is not an object of the apiserver yet.
func withoutMetadata(t *testing.T) (naive, ours string) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := requestOf(t)
	delete(in.Pod, "metadata")
	naive = "judged"
	func() {
		defer func() {
			if reason := recover(); reason != nil {
				naive = fmt.Sprintf("panics: %v", reason)
			}
		}()
		evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelBaseline, Version: api.LatestVersion()}, nil, podSpec(t, in))
	}()
	ours = "judged"
	if d := loaded(t, "").Evaluate(context.Background(), in); d.Denied() {
		ours = show(t, d)
	}
	return naive, ours
}
