// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/rego"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// naiveRule is a rule as it is written first, an object that it lets through, and the rule of the library that does not.
type naiveRule struct {
	// deny is the body of the naive rule.
	deny string
	// pod are changes of the Sandbox's Pod; object replaces the object, which is then of that kind.
	pod, kind, object string
	// configuration switches the rule of the library on.
	configuration, rule string
}

const allowListed = "rules: {registry-allowed: {enforcement: Deny, parameters: {registries: [registry.example.com]}}}"

var naiveRules = map[string]naiveRule{
	"other lists of containers": {
		deny: `some c in input.pod.spec.containers; c.securityContext.privileged`,
		pod:  "initContainers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]", rule: "privileged",
	},
	"null for absent": {
		deny: `object.get(input.pod.spec, "automountServiceAccountToken", true) == true`,
		pod:  "automountServiceAccountToken: null", rule: "automount-token",
	},
	"null for a list": {
		deny: `some c in array.concat(input.pod.spec.containers, object.get(input.pod.spec, "initContainers", [])); c.securityContext.privileged`,
		pod:  "{initContainers: null, containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]}", rule: "privileged",
	},
	"an object for a list": {
		deny: `some i in [0, 1, 2]; input.pod.spec.containers[i].securityContext.privileged`,
		pod:  "containers: {a: {name: a, image: 'a:1', securityContext: {privileged: true}}}", rule: "privileged",
	},
	"a value of another type": {
		deny: `input.pod.spec.hostPID == true`,
		pod:  "hostPID: 'true'", rule: "host-namespaces",
	},
	"not in, of something absent": {
		deny:          `class := input.pod.spec.runtimeClassName; not class in {"gvisor"}`,
		configuration: "rules: {runtimeclass-required: {enforcement: Deny, parameters: {always: true}}}", rule: "runtimeclass-required",
	},
	"a message about something absent": {
		deny: `some c in input.pod.spec.containers; c.securityContext.privileged; sprintf("%s is privileged", [c.name]) != ""`,
		pod:  "containers: [{image: 'a:1', securityContext: {privileged: true}}]", rule: "privileged",
	},
	"a function of something absent": {
		deny:          `some c in input.pod.spec.containers; not startswith(c.resources.limits.cpu, "1")`,
		pod:           "containers: [{name: a, image: 'a:1'}]",
		configuration: "rules: {limits-required: {enforcement: Deny}}", rule: "limits-required",
	},
	"a registry by its first letters": {
		deny: `some c in input.pod.spec.containers; not startswith(c.image, "registry.example.com")`,
		pod:  "containers: [{name: a, image: registry.example.com.evil.example/a}]", configuration: allowListed, rule: "registry-allowed",
	},
	"the port of a registry for a tag": {
		deny: `some c in input.pod.spec.containers; not contains(c.image, ":")`,
		pod:  "containers: [{name: a, image: 'localhost:5000/agent'}]", configuration: "rules: {no-latest: {enforcement: Deny}}", rule: "no-latest",
	},
	"a registry that is left out": {
		deny: `some c in input.pod.spec.containers; contains(c.image, "/"); not startswith(c.image, "registry.example.com/")`,
		pod:  "containers: [{name: a, image: 'python:3'}]", configuration: allowListed, rule: "registry-allowed",
	},
	"quantities as texts": {
		deny:          `some c in input.pod.spec.containers; c.resources.limits.memory > "9Gi"`,
		pod:           "containers: [{name: a, image: 'a:1', resources: {limits: {cpu: 1, memory: 80000Gi}}}]",
		configuration: "rules: {max-resources: {enforcement: Deny}}", rule: "max-resources",
	},
	"a range in two halves": {
		deny: `some rule in input.object.spec.networkPolicy.egress; some peer in rule.to; peer.ipBlock.cidr == "0.0.0.0/0"`,
		kind: engine.KindSandboxTemplate, object: "{egress: [{to: [{ipBlock: {cidr: 0.0.0.0/1}}, {ipBlock: {cidr: 128.0.0.0/1}}]}]}",
		configuration: "rules: {egress-any: {enforcement: Deny}}", rule: "egress-any",
	},
	"a rule without peers": {
		deny: `some rule in input.object.spec.networkPolicy.egress; some peer in rule.to; peer.ipBlock.cidr == "0.0.0.0/0"`,
		kind: engine.KindSandboxTemplate, object: "{egress: [{ports: [{port: 443}]}]}",
		configuration: "rules: {egress-any: {enforcement: Deny}}", rule: "egress-any",
	},
	"the address of a metadata service by its text": {
		deny: `some rule in input.object.spec.networkPolicy.egress; some peer in rule.to; startswith(peer.ipBlock.cidr, "169.254.169.254")`,
		kind: engine.KindSandboxTemplate, object: "{egress: [{to: [{ipBlock: {cidr: 169.254.0.0/16}}]}]}",
		configuration: "rules: {egress-metadata: {enforcement: Deny}}", rule: "egress-metadata",
	},
	"what a claim adds to the Pod": {
		deny: `some key, _ in input.pod.metadata.annotations; startswith(key, "io.katacontainers.")`,
		kind: engine.KindSandboxClaim, object: "{annotations: {io.katacontainers.config.hypervisor.path: /bin/sh}}",
		configuration: "rules: {runtime-annotations: {enforcement: Deny}}", rule: "runtime-annotations",
	},
}

// request is the object that the rule lets through.
func (n naiveRule) request(tb testing.TB) engine.Input {
	tb.Helper()
	var changes []string
	if n.pod != "" {
		changes = append(changes, n.pod)
	}
	in := requestOf(tb, changes...)
	if n.kind == "" {
		return in
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(n.object), &given); err != nil {
		tb.Fatal(err)
	}
	in = ofKind(in, n.kind)
	switch n.kind {
	case engine.KindSandboxTemplate:
		in.Object["spec"].(map[string]any)["networkPolicy"] = given
	case engine.KindSandboxClaim:
		in.Object["spec"].(map[string]any)["additionalPodMetadata"] = given
	}
	return in
}

// Each of these rules is how one is written first, and lets an object through that it was written for. The rule of the
// library refuses it.
func TestWhatANaiveRuleAllows(t *testing.T) {
	for name, tc := range naiveRules {
		t.Run(name, func(t *testing.T) {
			in := tc.request(t)
			naive := "package policies.extra.a\n\ndeny contains \"x\" if {\n\t" + strings.ReplaceAll(tc.deny, "; ", "\n\t") + "\n}\n"
			if !naively(t, naive, in) {
				t.Error("the naive rule refuses the object: the case shows nothing")
			}
			for _, f := range loaded(t, tc.configuration).Evaluate(context.Background(), in).Denials() {
				if f.Rule == tc.rule && !f.Failure {
					return
				}
			}
			t.Errorf("rule %s of the library does not refuse it", tc.rule)
		})
	}
}

// What is loaded in the obvious way may be more, or nothing at all.
func TestWhatNaiveLoadingAllows(t *testing.T) {
	good := ruleFile("a", "exempt if input.kind == \"Nothing\"\n\ndeny contains \"x\" if not exempt\n")
	cases := map[string]struct {
		second engine.Module
		// breaks says that a naive engine ends up without any rule.
		breaks bool
	}{
		"a file that breaks all others":      {ruleFile("b", "deny contains"), true},
		"a look-alike letter":                {ruleFile("b", "deny contains \"x\" if input.pоd\n"), true},
		"a second file of a package":         {extra("b.rego", strings.Replace(header("b", "Deny"), "extra.b", "extra.a", 1)+"deny contains \"y\" if input.kind == \"Nothing\"\n\nexempt if true\n"), false},
		"what belongs to another rule":       {ruleFile("b", "deny contains \"y\" if count(data.policies.extra.a.deny) > 100\n"), false},
		"data that nobody declared":          {ruleFile("b", "deny contains \"y\" if data.secrets.token == \"x\"\n"), false},
		"parameters of another rule as data": {ruleFile("b", "deny contains \"y\" if data.parameters.a.max == 7\n"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ast.CompileModules(map[string]string{"a.rego": string(good.Content), "b.rego": string(tc.second.Content)})
			if (err != nil) != tc.breaks {
				t.Errorf("a naive engine loads both with error %v", err)
			}
			e := newEngine(t)
			report, err := e.Load(context.Background(), []engine.Module{good, tc.second}, engine.Configuration{})
			if err != nil || len(report.Broken) != 1 || report.Broken[0].Name != "b.rego" {
				t.Fatalf("Load: %v, %s", err, show(t, report))
			}
			if d := e.Evaluate(context.Background(), requestOf(t)); !strings.Contains(show(t, d.Denials()), `"x"`) {
				t.Errorf("the good rule judges no more: %s", show(t, d))
			}
		})
	}
}

// One rule that errs ends the query of all: an engine that asks for errors has no finding of any rule then.
func TestOneRuleEndsTheWholeQueryOfANaiveEngine(t *testing.T) {
	good := ruleFile("good", "deny contains \"found\" if input.kind == \"Sandbox\"\n")
	cases := map[string]string{
		"a rule with two answers":            "deny contains \"x\" if v > 0\n\nv := 1\n\nv := 2 if input.kind\n",
		"an error that ends the whole query": "deny contains \"x\" if to_number(input.kind) > 1\n",
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			bad := ruleFile("a", body)
			compiler, err := ast.CompileModules(map[string]string{"good.rego": string(good.Content), "a.rego": string(bad.Content)})
			if err != nil {
				t.Fatal(err)
			}
			in := requestOf(t)
			results, err := rego.New(
				rego.Compiler(compiler), rego.Query("data.policies.extra.good.deny | data.policies.extra.a.deny"), rego.StrictBuiltinErrors(true),
				rego.Input(map[string]any{"kind": in.Kind}),
			).Eval(context.Background())
			if err == nil || len(results) > 0 {
				t.Errorf("the naive query gives %v, %v: the case shows nothing", results, err)
			}
			e := newEngine(t)
			if _, err := e.Load(context.Background(), []engine.Module{good, bad}, engine.Configuration{}); err != nil {
				t.Fatal(err)
			}
			told := map[string]bool{}
			for _, f := range e.Evaluate(context.Background(), in).Denials() {
				told[fmt.Sprintf("%s %t", f.Rule, f.Failure)] = true
			}
			if !told["good false"] || !told["a true"] {
				t.Errorf("found %v, want the finding of the good rule and the failure of the other", told)
			}
		})
	}
}

// A query for a package that nobody loaded has no result, which is taken for no finding.
func TestWhatANaiveEngineWithoutRulesAllows(t *testing.T) {
	results, err := rego.New(rego.Query("data.policies.extra.a.deny")).Eval(context.Background())
	if err != nil || len(results) > 0 {
		t.Errorf("a naive query without rules gives %v, %v", results, err)
	}
	if d := newEngine(t).Evaluate(context.Background(), requestOf(t)); !d.Denied() {
		t.Errorf("allowed: %s", show(t, d))
	}
	if _, err := newEngine(t).Load(context.Background(), nil, engine.Configuration{}); err == nil {
		t.Error("no rules at all are loaded without a word")
	}
}

// A naive engine takes parameters as they were written: a number is never greater than a text, and an empty list
// refuses nothing.
func TestWhatNaiveParametersAllow(t *testing.T) {
	cases := map[string]struct{ body, schema, configuration string }{
		"a text for a number": {
			"deny contains \"x\" if 6 > input.parameters.max\n", "max: {description: x, type: integer, default: 5}",
			"rules: {a: {parameters: {max: '5'}}}",
		},
		"an empty allow-list": {
			"deny contains \"x\" if {\n\tcount(input.parameters.allowed) > 0\n\tnot input.kind in input.parameters.allowed\n}\n",
			"allowed: {description: x, type: array, default: [a]}}\n#   at_least_one: [allowed", "rules: {a: {parameters: {allowed: []}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			module := ruleFile("a", tc.body)
			if !naively(t, string(module.Content), requestOf(t)) {
				t.Error("a naive engine refuses the object: the case shows nothing")
			}
			parameters := fmt.Sprintf("#   parameters: {%s}\n#   severity", tc.schema)
			if at := strings.Index(tc.schema, "}\n"); at >= 0 {
				parameters = fmt.Sprintf("#   parameters: {%s]\n#   severity", tc.schema)
			}
			module.Content = []byte(strings.Replace(string(module.Content), "#   severity", parameters, 1))
			report, err := newEngine(t).Load(context.Background(), []engine.Module{module}, configured(t, tc.configuration))
			if err == nil || len(report.Broken) > 0 {
				t.Errorf("the configuration is in force: %s", show(t, report))
			}
		})
	}
}

// The folder that a ConfigMap is mounted as shows each file three times.
func TestWhatANaiveLoaderReadsOfAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	content := ruleFile("a", "default limit := 1\n\ndeny contains \"x\" if limit == 1\n").Content
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "..2026_11_30"), 0o755),
		os.WriteFile(filepath.Join(dir, "..2026_11_30", "a.rego"), content, 0o644),
		os.Symlink("..2026_11_30", filepath.Join(dir, "..data")),
		os.Symlink(filepath.Join("..data", "a.rego"), filepath.Join(dir, "a.rego")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	naive, err := loader.NewFileLoader().All([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	compiler := ast.NewCompiler()
	if compiler.Compile(naive.ParsedModules()); len(naive.Modules) < 2 || !compiler.Failed() {
		t.Errorf("a naive loader reads %d modules, and they compile", len(naive.Modules))
	}
	modules, err := engine.LoadFS("folder", os.DirFS(dir), ".")
	if err != nil || len(modules) != 1 {
		t.Errorf("LoadFS: %d modules, %v", len(modules), err)
	}
}

// Two evaluations of one request at another moment differ where the clock is the machine's.
func TestWhatTheClockOfANaiveEngineTells(t *testing.T) {
	query, err := rego.New(rego.Query("x := time.now_ns()")).PrepareForEval(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for len(told) < 2 {
		results, err := query.Eval(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		told[fmt.Sprint(results[0].Bindings["x"])] = true
	}
	e, in := loaded(t, "", ruleFile("a", "deny contains sprintf(\"%d\", [time.now_ns()])\n")), requestOf(t)
	in.Now = in.Now.AddDate(2026, 0, 0)
	if one, other := e.Evaluate(context.Background(), in), e.Evaluate(context.Background(), in); one.Findings[0].Message != other.Findings[0].Message {
		t.Errorf("one request is judged at %q and at %q", one.Findings[0].Message, other.Findings[0].Message)
	}
}

// The library of the Pod Security Standards expects what the API server has read: without metadata it panics.
func TestAPodWithoutMetadataMakesTheNaiveEvaluatorPanic(t *testing.T) {
	naive, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := requestOf(t)
	delete(in.Pod, "metadata")
	panicked := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		naive.EvaluatePod(api.LevelVersion{Level: api.LevelBaseline, Version: api.LatestVersion()}, nil, nil)
		return false
	}()
	if !panicked {
		t.Error("it does not panic: the case shows nothing")
	}
	if d := loaded(t, "").Evaluate(context.Background(), in); d.Denied() {
		t.Errorf("denied: %s", show(t, d))
	}
}
