// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// parametersOfNaive are what a naive engine passes on as it was written.
var parametersOfNaive = map[string]any{"max": "5", "allowed": []any{}}

// naively asks OPA in the obvious way: a compiler for the module, capabilities given to the query, and whoever has
// no finding in the set is allowed.
func naively(tb testing.TB, module string, in engine.Input) (allowed bool) {
	tb.Helper()
	compiler, err := ast.CompileModules(map[string]string{"a.rego": module})
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
	results, err := query.Eval(context.Background(), rego.EvalInput(map[string]any{
		"kind": in.Kind, "object": in.Object, "pod": in.Pod, "operation": in.Operation, "parameters": parametersOfNaive,
	}))
	if err != nil {
		tb.Fatal(err)
	}
	if len(results) == 0 {
		return true
	}
	findings, _ := results[0].Expressions[0].Value.([]any)
	return len(findings) == 0
}

// Each of these rules means to refuse the object. An engine that is put together in the obvious way allows it
// without a word; ours refuses it, by the rule or because the rule is at fault.
func TestWhatANaiveEngineAllows(t *testing.T) {
	cases := map[string]string{
		"an error of a builtin":               "deny contains \"x\" if time.parse_rfc3339_ns(input.object.metadata.name) > 0\n",
		"an operand of the wrong type":        "deny contains \"x\" if startswith(input.object.spec.podTemplate.spec.containers[0].resources, \"a\")\n",
		"a field that does not exist":         "deny contains \"x\" if input.pod.spec.automountServiceAcountToken == false\n",
		"a type that the field does not have": "deny contains \"x\" if input.pod.spec.automountServiceAccountToken == \"false\"\n",
		"a set in the form of v0":             "deny[msg] if { msg := \"x\" }\n",
		"an answer that is no set":            "deny := {\"message\": \"x\"}\n",
		"another name of the entry":           "denied contains \"x\" if true\n",
		"a call of the network":               "deny contains \"x\" if http.send({\"url\": \"http://127.0.0.1:1/\", \"method\": \"get\"}).status_code == 200\n",
		"a look at the environment":           "deny contains \"x\" if opa.runtime().env.NOT_SET_ANYWHERE == \"1\"\n",
		"a quantity by the wrong builtin":     "deny contains \"x\" if units.parse_bytes(\"10Gz\") > 1000\n",
		"a range with leading zeros":          "deny contains \"x\" if net.cidr_contains(\"010.0.0.0/8\", \"10.0.0.1\")\n",
		"a parameter that nobody declared":    "deny contains \"x\" if count(input.parameters.refused) > 0\n",
	}
	in := requestOf(t)
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			module := ruleFile("a", body)
			if !naively(t, string(module.Content), in) {
				t.Error("a naive engine refuses the object: the case shows nothing")
			}
			e := newEngine(t)
			loadAlone(t, e, module)
			if d := e.Evaluate(context.Background(), in); !d.Denied() {
				t.Errorf("allowed: %s", show(t, d))
			}
		})
	}
}

// Asking for a level alone, of a template that no apiserver has validated as a Pod, is not enough.
func TestWhatALevelAloneAllows(t *testing.T) {
	naive, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const restricted = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
	container := func(context string) string {
		return "containers: [{name: a, image: 'a:1', securityContext: {allowPrivilegeEscalation: false, " + context + "}}]"
	}
	cases := map[string]struct {
		level   api.Level
		changes []string
	}{
		"a hostPath behind a configMap":           {api.LevelRestricted, []string{restricted, container("capabilities: {drop: [ALL]}"), "volumes: [{name: a, configMap: {name: a}, hostPath: {path: /}}]"}},
		"a capability under Windows":              {api.LevelRestricted, []string{restricted, container("capabilities: {add: [SYS_ADMIN]}"), "os: {name: windows}"}},
		"an unmasked /proc in a user namespace":   {api.LevelBaseline, []string{restricted, container("capabilities: {drop: [ALL]}, procMount: Unmasked"), "hostUsers: false"}},
		"root in a user namespace":                {api.LevelRestricted, []string{"securityContext: {runAsUser: 0, seccompProfile: {type: RuntimeDefault}}", container("capabilities: {drop: [ALL]}"), "hostUsers: false"}},
		"a token of the Kubernetes API in a list": {api.LevelRestricted, []string{restricted, container("capabilities: {drop: [ALL]}"), "volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a}}]}}]"}},
	}
	library := loaded(t, "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, tc.changes...)
			in.Tier = map[string]any{"podSecurity": map[string]any{"deny": string(tc.level), "version": "v1.37"}}
			var spec corev1.PodSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Pod["spec"].(map[string]any), &spec); err != nil {
				t.Fatal(err)
			}
			level := api.LevelVersion{Level: tc.level, Version: api.MajorMinorVersion(1, 37)}
			if got := policy.AggregateCheckResults(naive.EvaluatePod(level, &metav1.ObjectMeta{}, &spec)); !got.Allowed {
				t.Errorf("the level alone refuses it: %s", got.ForbiddenDetail())
			}
			if d := library.Evaluate(context.Background(), in); !d.Denied() {
				t.Errorf("allowed: %s", show(t, d))
			}
		})
	}
}
