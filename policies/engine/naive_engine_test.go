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
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/rego"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// together evaluates a rule that errs beside one that finds something: an engine that asks for errors has no finding of
// any rule then.
func together(bad string) func(t *testing.T) (naive, ours string) {
	return func(t *testing.T) (naive, ours string) {
		t.Helper()
		good, faulty := ruleFile("good", "deny contains \"found\" if input.kind == \"Sandbox\"\n"), ruleFile("a", bad+"\n")
		compiler, err := ast.CompileModules(map[string]string{"good.rego": string(good.Content), "a.rego": string(faulty.Content)})
		if err != nil {
			t.Fatal(err)
		}
		in := requestOf(t)
		results, err := rego.New(
			rego.Compiler(compiler), rego.Query("data.policies.extra.good.deny | data.policies.extra.a.deny"), rego.StrictBuiltinErrors(true),
			rego.Input(map[string]any{"kind": in.Kind}),
		).Eval(context.Background())
		naive = fmt.Sprintf("%d results, failed %t", len(results), err != nil)
		e := newEngine(t)
		if _, err := e.Load(context.Background(), []engine.Module{good, faulty}, engine.Configuration{}); err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{}
		for _, f := range e.Evaluate(context.Background(), in).Denials() {
			told[fmt.Sprintf("%s %t", f.Rule, f.Failure)] = true
		}
		if naive != "0 results, failed true" || !told["good false"] || !told["a true"] {
			return naive, allowed
		}
		return naive, refused
	}
}

// beside loads a second file beside a rule that refuses. In one package with it, or broken, it takes the rule's findings
// from a naive engine, or reads what is not its own; ours leaves the second file out, for the reason.
func beside(second, pkg, reason string) func(t *testing.T) (naive, ours string) {
	return func(t *testing.T) (naive, ours string) {
		t.Helper()
		good := ruleFile("a", "exempt if input.kind == \"Nothing\"\n\ndeny contains \"x\" if not exempt\n")
		other := ruleFile("b", second+"\n")
		if pkg != "" {
			other.Content = []byte(strings.Replace(string(other.Content), "extra.b", pkg, 1))
		}
		naive = "loads both"
		if _, err := ast.CompileModules(map[string]string{"a.rego": string(good.Content), "b.rego": string(other.Content)}); err != nil {
			naive = "loads none"
		}
		e := newEngine(t)
		report, err := e.Load(context.Background(), []engine.Module{good, other}, engine.Configuration{})
		if err != nil || len(report.Broken) != 1 || report.Broken[0].Name != "b.rego" || !strings.Contains(report.Broken[0].Reason, reason) {
			t.Errorf("Load: %v, %s; want that b.rego is left out because %q", err, show(t, report), reason)
			return naive, naive
		}
		found := verdict(e.Evaluate(context.Background(), requestOf(t)).Findings, func(f engine.Finding) bool { return f.Message == "x" })
		return naive, "loads one, " + found
	}
}

// notLoaded asks before anything is loaded: a query for a package that nobody loaded has no result, which is taken for no
// finding.
func notLoaded(t *testing.T) (naive, ours string) {
	t.Helper()
	ours = verdict(newEngine(t).Evaluate(context.Background(), requestOf(t)).Findings, func(f engine.Finding) bool {
		return strings.Contains(f.Message, "no rules are loaded yet")
	})
	return naiveVerdict(t, extra("none.rego", "package policies.extra.none\n"), requestOf(t)), ours
}

// noRules loads nothing.
func noRules(t *testing.T) (naive, ours string) {
	t.Helper()
	naive, ours = "loads", "loads"
	if _, err := ast.CompileModules(nil); err != nil {
		naive = err.Error()
	}
	if _, err := newEngine(t).Load(context.Background(), nil, engine.Configuration{}); err != nil {
		ours = err.Error()
	}
	return naive, ours
}

// parameters are passed on as they were written by a naive engine: a number is never greater than a text, and an empty list
// refuses nothing. Ours refuses the configuration.
func parameters(rule, schema, given, reason string) func(t *testing.T) (naive, ours string) {
	return func(t *testing.T) (naive, ours string) {
		t.Helper()
		module := ruleFile("a", rule+"\n")
		naive = naiveVerdict(t, module, requestOf(t))
		module.Content = []byte(strings.Replace(string(module.Content), "#   severity", "#   parameters: "+schema+"\n#   severity", 1))
		if report := loadAlone(t, newEngine(t), module); len(report.Broken) > 0 {
			t.Fatalf("the rule does not even load: %s", show(t, report))
		}
		_, err := newEngine(t).Load(context.Background(), []engine.Module{module}, configured(t, "rules: {a: {parameters: "+given+"}}"))
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Load: %v, want %q", err, reason)
			return naive, allowed
		}
		return naive, refused
	}
}

// mounted reads the folder that a ConfigMap is mounted as, which shows each file three times.
func mounted(t *testing.T) (naive, ours string) {
	t.Helper()
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
	read, err := loader.NewFileLoader().All([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	compiler := ast.NewCompiler()
	compiler.Compile(read.ParsedModules())
	naive = fmt.Sprintf("compiles %t", !compiler.Failed())
	modules, err := engine.LoadFS("folder", os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	report, err := newEngine(t).Load(context.Background(), modules, engine.Configuration{})
	return naive, fmt.Sprintf("compiles %t", err == nil && report.Rules == 1 && len(report.Broken) == 0)
}

// clocks judges one request twice.
func clocks(t *testing.T) (naive, ours string) {
	t.Helper()
	module, in := ruleFile("a", "deny contains sprintf(\"%d\", [time.now_ns()])\n"), requestOf(t)
	in.Now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	query, e := naively(t, module), newEngine(t)
	loadAlone(t, e, module)
	told, ofOurs := map[string]bool{}, map[string]bool{}
	for len(told) < 2 {
		results, err := query.Eval(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		told[fmt.Sprint(results[0].Expressions[0].Value)] = true
		ofOurs[e.Evaluate(context.Background(), in).Findings[0].Message] = true
	}
	return fmt.Sprintf("%d answers", len(told)), fmt.Sprintf("%d answers", len(ofOurs))
}

// Times of the evaluations that do not end.
const (
	patience = 8 * time.Second
	slack    = time.Second
)

// hanging are a naive engine and ours with a rule that does not end.
type hanging struct {
	naive func()
	ours  *engine.Engine
}

func newHanging(t *testing.T, opts ...engine.Option) hanging {
	t.Helper()
	query, in := naively(t, held()), requestOf(t)
	e := newEngine(t, append(opts, engine.WithBudget(patience, slack))...)
	loadAlone(t, e, held())
	return hanging{ours: e, naive: func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// Its answer comes too late for anybody.
		_, _ = query.Eval(ctx, naiveInput(in))
	}}
}

func inTime(begun time.Time) string {
	if (clock.RealClock{}).Since(begun) > patience+slack {
		return "late"
	}
	return "in time"
}

// holdsUp waits for one evaluation.
func holdsUp(t *testing.T) (naive, ours string) {
	t.Helper()
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		both, watch := newHanging(t), clock.RealClock{}
		begun := watch.Now()
		both.ours.Evaluate(context.Background(), requestOf(t))
		ours = inTime(begun)
		time.AfterFunc(time.Hour, h.Release)
		begun = watch.Now()
		both.naive()
		naive = inTime(begun)
	})
	return naive, ours
}

// addsUp counts the evaluations that run at the same time.
func addsUp(t *testing.T) (naive, ours string) {
	t.Helper()
	const places, requests = 2, 5
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		both := newHanging(t, engine.WithConcurrency(places))
		ran := func(evaluate func()) string {
			before := h.Calls()
			for range requests {
				go evaluate()
			}
			clock.RealClock{}.Sleep(2 * patience)
			return fmt.Sprintf("%d at the same time", h.Calls()-before)
		}
		ours = ran(func() { both.ours.Evaluate(context.Background(), requestOf(t)) })
		naive = ran(both.naive)
		h.Release()
	})
	if ours != fmt.Sprintf("%d at the same time", places) {
		return naive, naive
	}
	return naive, ours
}

// costsAll asks again after the rule did not end many times.
func costsAll(t *testing.T) (naive, ours string) {
	t.Helper()
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		both := newHanging(t, engine.WithConcurrency(100))
		after := func(evaluate func()) string {
			for range 5 {
				go evaluate()
				clock.RealClock{}.Sleep(2 * patience)
			}
			before := h.Calls()
			go evaluate()
			clock.RealClock{}.Sleep(2 * patience)
			return fmt.Sprintf("runs again: %t", h.Calls() > before)
		}
		ours = after(func() { both.ours.Evaluate(context.Background(), requestOf(t)) })
		naive = after(both.naive)
		h.Release()
	})
	return naive, ours
}
