// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// doubling is a rule that applies an expression in # to its own outcome, many times.
func doubling(times int, first, step string) engine.Module {
	var body strings.Builder
	fmt.Fprintf(&body, "deny contains \"x\" if {\n\tx0 := %s\n", first)
	for i := range times {
		fmt.Fprintf(&body, "\tx%d := %s\n", i+1, strings.ReplaceAll(step, "#", fmt.Sprintf("x%d", i)))
	}
	fmt.Fprintf(&body, "\tis_null(x%d)\n}\n", times)
	return ruleFile("a", body.String())
}

// slices2000 is a rule that takes all of an array as often as it has pairs of members.
func slices2000() engine.Module {
	return ruleFile("a", "xs := ["+strings.TrimSuffix(strings.Repeat("1, ", 2000), ", ")+"]\n\n"+
		"deny contains \"y\" if count([part | some _ in xs; some j, _ in xs; part := array.slice(xs, 0, 2000 - (j % 2))]) == 1\n")
}

// A rule that makes ever more of what it has fails before that is much: a deadline alone would come after the
// memory is gone, and computing with long numbers does not notice one.
func TestARuleCannotMakeMuchOfLittle(t *testing.T) {
	const most = 128 << 20
	cases := map[string]engine.Module{
		"a text joined with itself":        doubling(40, `"0123456789"`, `concat("", [#, #])`),
		"a text in a template":             doubling(40, `"0123456789"`, "$`{#}{#}`"),
		"a text formatted twice":           doubling(40, `"0123456789"`, `sprintf("%s%s", [#, #])`),
		"a text with all letters changed":  doubling(10, `"aaaaaaaaaa"`, `replace(#, "a", "aaaaaaaaaa")`),
		"a text with matches changed":      doubling(10, `"aaaaaaaaaa"`, `regex.replace(#, "a", "aaaaaaaaaa")`),
		"a number padded":                  doubling(1, `"%0999999d%0999999d%0999999d%0999999d%0999999d%0999999d%0999999d%0999999d%0999999d%0999999d"`, `sprintf(#, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])`),
		"an array joined with itself":      doubling(40, `[1, 2, 3]`, `array.concat(#, #)`),
		"an object united with itself":     doubling(40, `{"a": 1}`, `object.union_n([#, {sprintf("%v", [#]): #}])`),
		"a text encoded again and again":   doubling(40, `"0123456789"`, `hex.encode(#)`),
		"a number squared":                 doubling(40, `12345678901234567890`, `# * #`),
		"a product":                        doubling(40, `12345678901234567890`, `product([#, #])`),
		"a number with a long exponent":    doubling(1, `1e29000`, `round(#)`),
		"a text split":                     doubling(1, `replace(sprintf("%9999d", [1]), " ", sprintf("%99d", [1]))`, `split(#, "")`),
		"a text split by nothing special":  doubling(1, `replace(sprintf("%9999d", [1]), " ", sprintf("%99d", [1]))`, "regex.split(`x?`, #)"),
		"a text of JSON":                   doubling(1, `concat("", ["[0", replace(sprintf("%9999d", [1]), " ", replace(sprintf("%99d", [1]), " ", ",0")), "]"])`, `json.unmarshal(#)`),
		"a text of YAML":                   doubling(1, `concat("", ["[0", replace(sprintf("%9999d", [1]), " ", replace(sprintf("%99d", [1]), " ", ",0")), "]"])`, `yaml.unmarshal(#)`),
		"a patch that copies":              doubling(1, `{"a": 1}`, `json.patch(#, [`+strings.Repeat(`{"op": "copy", "from": "", "path": "/b"}, {"op": "copy", "from": "", "path": "/c"},`, 20)+`])`),
		"a text without another's letters": doubling(1, `replace(sprintf("%9999d", [1]), " ", sprintf("%99d", [1]))`, `trim(#, replace(#, " ", "x"))`),
		"a text quoted again and again":    doubling(40, `"**********"`, `glob.quote_meta(#)`),
		"a thousand groups":                doubling(1, `replace(sprintf("%999d", [1]), " ", sprintf("%99d", [1]))`, "regex.find_all_string_submatch_n(replace(sprintf(`%1000d`, [1]), ` `, `()`), #, -1)"),
		"parts of an array, a million":     slices2000(),
		"an expression of a thousand":      doubling(1, `replace(sprintf("%60d", [1]), " ", "(a{1000}b)")`, `regex.match(#, #)`),
	}
	for name, module := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
			if report := loadAlone(t, e, module); len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			in := requestOf(t)
			cost := allocated(func() {
				d := e.Evaluate(context.Background(), in)
				if !d.Denied() || !strings.Contains(show(t, d), "are allowed") || strings.Contains(show(t, d), "in time") {
					t.Errorf("want the rule to fail because it makes too much, got %s", show(t, d))
				}
			})
			if cost > most {
				t.Errorf("it took %d MB, want at most %d", cost>>20, most>>20)
			}
		})
	}
}

// loadAlone puts the rule in force without the library.
func loadAlone(tb testing.TB, e *engine.Engine, module engine.Module) engine.LoadReport {
	tb.Helper()
	report, err := e.Load(context.Background(), []engine.Module{module}, engine.Configuration{})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// bomb is YAML whose aliases stand for a billion texts.
func bomb() string {
	var text strings.Builder
	text.WriteString("#   a0: &a0 x\n")
	for i := range 9 {
		alias := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&text, "#   a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(alias+", ", 10), ", "))
	}
	return text.String()
}

// What is wrong with a module is said, its effect is that of one rule that fails, and reading it costs little.
func TestHostileModulesAreRefused(t *testing.T) {
	const most = 256 << 20
	cases := map[string]struct {
		module engine.Module
		reason string
	}{
		"a default":                   {ruleFile("a", "default deny := {\"x\"}\n"), "deny has to be a set"},
		"recursion":                   {ruleFile("a", "deny contains \"x\" if f(1)\n\nf(x) if f(x)\n"), "recursive"},
		"recursion by the own set":    {ruleFile("a", "deny contains \"x\" if count(deny) > 0\n"), "recursive"},
		"recursion by own data":       {ruleFile("a", "deny contains \"x\" if data.policies.extra.a[\"deny\"]\n"), "recursive"},
		"a random number":             {ruleFile("a", "deny contains \"x\" if rand.intn(\"a\", 2) == 1\n"), "rand.intn; this builtin is not allowed"},
		"a trace":                     {ruleFile("a", "deny contains \"x\" if trace(\"x\")\n"), "trace; this builtin is not allowed"},
		"a range of numbers":          {ruleFile("a", "deny contains \"x\" if count(numbers.range(1, 1000000000)) > 0\n"), "this builtin is not allowed"},
		"the input as a name":         {ruleFile("a", "input := 1\n\ndeny contains \"x\" if true\n"), "a.rego:12"},
		"deny as a variable":          {ruleFile("a", "deny contains \"x\" if {\n\tdeny := 1\n\tdeny == 1\n}\n\nf(input) := input\n"), "a.rego:1"},
		"an expression of no grammar": {ruleFile("a", "deny contains \"x\" if regex.match(`(((`, input.kind)\n\nx contains 1 if y\n"), "unsafe"},
		"two patterns that meet":      {ruleFile("a", "deny contains a if {\n\t[a, input.kind] = [\"x\", b]\n\tb == input.kind\n}\n"), "a.rego:13: rego_compile_error: both sides take something apart"},
		"a bomb of aliases":           {extra("a.rego", strings.Replace(header("a", "Deny"), "# custom:\n", "# custom:\n"+bomb(), 1)+"deny contains \"x\" if true\n"), "a.rego"},
		"text that is not UTF-8":      {ruleFile("a", "deny contains \"\xff\xfe\" if true\n"), "a.rego"},
		"a zero byte":                 {ruleFile("a", "deny contains \"\x00\" if true\n"), "a.rego"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			var report engine.LoadReport
			if cost := allocated(func() { report = loadAlone(t, e, tc.module) }); cost > most {
				t.Errorf("it took %d MB, want at most %d", cost>>20, most>>20)
			}
			if len(report.Broken) != 1 || !strings.Contains(report.Broken[0].Reason, tc.reason) || len(report.Broken[0].Reason) > 4096 {
				t.Fatalf("want one broken module because of %q, got %s", tc.reason, show(t, report.Broken))
			}
		})
	}
}

// Expressions are matched in time that grows with the text only, and those that would grow are refused; neither takes
// the memory or the time of the other rules.
func TestHugeExpressions(t *testing.T) {
	const most = 256 << 20
	words := make([]string, 2000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i)
	}
	cases := map[string]struct {
		pattern, text string
		// want is a part of the finding's message: the rule's own, or that of its failure.
		want string
	}{
		"repeats within repeats":         {`((a{100}){100}){100}`, "a", "regex.match"},
		"a repeat beyond what is served": {`a{100000}`, "a", "regex.match"},
		"brackets without end":           {strings.Repeat("(", 50000), "a", "regex.match"},
		"one of two thousand words":      {"^(" + strings.Join(words, "|") + ")$", "word1999", "it matches"},
		"one of all letters many times":  {strings.Repeat("[a-z]{1000}", 50), "a", "are allowed"},
		"repeats that others backtrack":  {`^(x+x+)+y`, strings.Repeat("x", 50000) + "y", "it matches"},
		"repeats without a match":        {`^(x+x+)+y`, strings.Repeat("x", 50000), "it does not"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf("matches if regex.match(%q, %q)\n\ndeny contains \"it matches\" if matches\n\ndeny contains \"it does not\" if not matches\n", tc.pattern, tc.text)
			e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
			if report := loadAlone(t, e, ruleFile("a", body)); len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			in := requestOf(t)
			cost := allocated(func() {
				if d := e.Evaluate(context.Background(), in); !d.Denied() || !strings.Contains(show(t, d), tc.want) {
					t.Errorf("want %q, got %.500s", tc.want, show(t, d))
				}
			})
			if cost > most {
				t.Errorf("it took %d MB, want at most %d", cost>>20, most>>20)
			}
		})
	}
}

// Neither does one of the other language of patterns.
func TestGlobsDoNotBacktrack(t *testing.T) {
	e := newEngine(t, engine.WithBudget(8*time.Second, time.Second))
	body := fmt.Sprintf("deny contains \"it does not\" if not glob.match(%q, null, %q)\n", strings.Repeat("*a", 30)+"b", strings.Repeat("a", 2000))
	loadAlone(t, e, ruleFile("a", body))
	if d := e.Evaluate(context.Background(), requestOf(t)); !strings.Contains(show(t, d), "it does not") || len(failuresOf(d)) > 0 {
		t.Errorf("got %.500s", show(t, d))
	}
}

// What a rule prints goes nowhere: it neither decides nor fails, and where it would keep a rule from deciding because what
// it prints is undefined, it does not.
func TestPrintDoesNothing(t *testing.T) {
	for name, line := range map[string]string{
		"a text": `print("here")`, "something undefined": `print(input.object.spec.shutdownTime)`, "an error": `print(to_number("x"))`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if report := loadAlone(t, e, ruleFile("a", "deny contains \"x\" if {\n\t"+line+"\n\tinput.kind == \"Sandbox\"\n}\n")); len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			d := e.Evaluate(context.Background(), requestOf(t))
			if len(d.Findings) != 1 || d.Findings[0].Message != "x" {
				t.Errorf("want the finding of the rule alone, got %s", show(t, d))
			}
		})
	}
}

// As many rules as a ConfigMap may hold are in force together, and a broken one breaks no other.
func TestTwoHundredModulesOfOneConfigMap(t *testing.T) {
	const many = 200
	e, modules := newEngine(t), copies(many)
	if report := load(t, e, "", modules...); len(report.Broken) > 0 || report.Rules < many {
		t.Fatal(show(t, report))
	}
	d := e.Evaluate(context.Background(), requestOf(t, "containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]"))
	said := 0
	for _, f := range d.Findings {
		if f.Failure {
			t.Errorf("a rule failed: %s", show(t, f))
		}
		said += max(1, f.Omits)
	}
	if said < many {
		t.Errorf("%d findings, want one of each of %d rules, listed or counted", said, many)
	}
	for i := range many {
		if id := fmt.Sprintf("extra%d", i); !slices.Contains(d.Evaluated, id) {
			t.Errorf("rule %s did not judge", id)
		}
	}
	modules[0] = ruleFile("extra0", "deny contains")
	if report := load(t, e, "", modules...); len(report.Broken) != 1 || report.Broken[0].Rule != "extra0" || report.Rules < many {
		t.Errorf("with one that is broken: %s", show(t, report))
	}
}
