// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// chain is a rule of helpers v0, v1, ..., each made of the one before in the way that # stands in, and of what is
// then done with the last one.
func chain(times int, first, step, last string) engine.Module {
	var body strings.Builder
	fmt.Fprintf(&body, "v0 := %s\n\n", first)
	for i := range times {
		text := strings.NewReplacer("#", fmt.Sprintf("v%d", i), "@", fmt.Sprintf("v%d", i+1)).Replace(step)
		fmt.Fprintf(&body, "%s\n\n", text)
	}
	return ruleFile("a", body.String()+strings.ReplaceAll(last, "#", fmt.Sprintf("v%d", times))+"\n")
}

const found = `deny contains "x" if is_null(#)`

// What a rule composes without a builtin is bounded as well: neither types nor values take the memory, when the
// module loads or when it judges.
func TestARuleCannotComposeMuchOfLittle(t *testing.T) {
	const most = 256 << 20
	cases := map[string]engine.Module{
		"arrays in one body":               doubling(40, `[1]`, `[#, #]`),
		"objects in one body":              doubling(40, `{"a": 1}`, `{"a": #, "b": #}`),
		"keys of objects":                  doubling(40, `{"a": 1}`, `{[#, 1]: 1, [#, 2]: 2}`),
		"sets in one body":                 doubling(40, `{1}`, `{[1, #], [2, #]}`),
		"arrays by unification":            ruleFile("a", strings.ReplaceAll(body(doubling(40, `[1]`, `[#, #]`)), ":=", "=")),
		"comprehensions in one body":       doubling(12, `[1]`, `[# | some _ in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]`),
		"comprehensions of sets":           doubling(12, `[1]`, `{[i, #] | some i in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}`),
		"comprehensions of objects":        doubling(12, `[1]`, `{i: # | some i in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]}`),
		"arrays by rules":                  chain(40, `[1]`, `@ := [#, #]`, found),
		"arrays by else":                   chain(40, `[1]`, "@ := [#, #, 1] if input.kind == `x`\nelse := [#, #]", found),
		"objects of rules with a path":     chain(40, `[1]`, "@.a := #\n\n@.b := #", found),
		"objects of rules with a variable": chain(40, `[1]`, `@[k] := # if some k in ["a", "b", "c"]`, found),
		"keys of rules with a variable":    chain(40, `[1]`, `@[k] := 1 if some k in {[#, 1], [#, 2]}`, found),
		"sets of rules":                    chain(40, `[1]`, `@ contains [k, #] if some k in ["a", "b", "c"]`, found),
		"functions of functions":           ruleFile("a", "f(x) := [x, x]\n\n"+body(doubling(40, `[1]`, `f(#)`))),
		"functions that call others":       functions(40, `[x, x]`),
		"comparing what is equal":          chain(40, `[1]`, `@ := [#, #]`, "w := v40\n\ndeny contains \"x\" if [#] == [w]"),
		"a default that is returned":       doubling(40, `[1]`, `object.get({}, "a", [#, #])`),
		"parts that both sides take":       doubling(40, `[1]`, `[a | a := [#, #]][0]`),
		"a finding of all":                 chain(12, `["0123456789"]`, `@ := [#, #, #, #]`, `deny contains #`),
		"a message of all":                 chain(12, `["0123456789"]`, `@ := [#, #, #, #]`, `deny contains {"message": #}`),
		"findings beyond number":           ruleFile("a", body(loop(3, `concat("", [a, b, c, big])`))+"\nbig := replace(sprintf(\"%400d\", [1]), \" \", sprintf(\"%100d\", [1]))\n"),
		"members beyond number":            ruleFile("a", "deny contains \"x\" if is_null(many)\n\n"+strings.Replace(body(loop(6, `[concat("", [a, b, c, d, e, f]), sprintf("%900s", [a])]`)), "deny", "many", 1)),
	}
	for name, module := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
			var report engine.LoadReport
			if cost := allocated(func() { report = loadAlone(t, e, module) }); cost > most {
				t.Errorf("loading it took %d MB, want at most %d", cost>>20, most>>20)
			}
			if len(report.Broken) > 0 {
				t.Fatal(report.Broken[0].Reason)
			}
			in := requestOf(t)
			cost := allocated(func() {
				d := e.Evaluate(context.Background(), in)
				if text := show(t, d); !d.Denied() || !strings.Contains(text, "are allowed") || strings.Contains(text, "in time") {
					t.Errorf("want the rule to fail because it makes too much, got %.2000s", text)
				}
			})
			if cost > most {
				t.Errorf("judging took %d MB, want at most %d", cost>>20, most>>20)
			}
		})
	}
}

// body is what follows the METADATA of a module.
func body(m engine.Module) string {
	_, text, _ := strings.Cut(string(m.Content), "package policies.extra.a\n")
	return text
}

// functions are f0, f1, ..., each of which calls the next with what it makes of its argument.
func functions(times int, made string) engine.Module {
	var text strings.Builder
	for i := range times {
		fmt.Fprintf(&text, "f%d(x) := f%d(%s)\n\n", i, i+1, made)
	}
	fmt.Fprintf(&text, "f%d(x) := x\n\ndeny contains \"x\" if is_null(f0(1))\n", times)
	return ruleFile("a", text.String())
}

// loop finds something for every combination of some digits.
func loop(depth int, finding string) engine.Module {
	var text strings.Builder
	text.WriteString("deny contains " + finding + " if {\n")
	for i := range depth {
		fmt.Fprintf(&text, "\tsome %c in digits\n", 'a'+i)
	}
	text.WriteString("}\n\ndigits := {\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"}\n")
	return ruleFile("a", text.String())
}

// What looks like it and is little is as it was.
func TestARuleMayComposeWhatItNeeds(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("1234, ", 3000), ", ")
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("\"name-%d\"", i)
	}
	cases := map[string]struct{ body, want string }{
		"a deep value":                    {body(doubling(12, `[1]`, `[#]`)) + "\ndeny contains \"y\"\n", "y"},
		"a value twice a few times":       {"deny contains y if {\n\tx := [1, 2]\n\ty := {\"message\": sprintf(\"%v\", [[x, x]])}\n}\n", "[[1, 2], [1, 2]]"},
		"something taken apart":           {"deny contains b if {\n\t[a, b] := split(\"x/y\", \"/\")\n\ta == \"x\"\n}\n", "y"},
		"something taken apart by =":      {"deny contains b if {\n\t[a, b] = [\"x\", \"y\"]\n\ta == \"x\"\n}\n", "y"},
		"members taken apart":             {"deny contains b if some [_, {\"b\": b}] in [[1, {\"b\": \"y\"}]]\n", "y"},
		"arguments taken apart":           {"deny contains f([\"x\", \"y\"])\n\nf([_, b]) := b\n", "y"},
		"a function of what it is given":  {"deny contains f({\"a\": y}) if y := \"y\"\n\nf(x) := x.a\n", "y"},
		"every member of what it makes":   {"deny contains \"y\" if {\n\tx := 1\n\tevery y in [x, x] {\n\t\t[y, 1] == [1, 1]\n\t}\n}\n", "y"},
		"a comprehension in another":      {"deny contains concat(\"\", [z | some x in [[\"y\"]]; some z in [w | some w in x]])\n", "y"},
		"a comprehension of a collection": {"deny contains y if {\n\ts := {[a, b] | some a in [\"y\"]; some b in [1, 2]}\n\tcount(s) == 2\n\tsome [y, 1] in s\n}\n", "y"},
		"an object of names":              {"deny contains by.y\n\nby := {name: name | some name in [\"x\", \"y\"]}\n", "y"},
		"a set that has a pair":           {"deny contains \"y\" if pairs[[\"a\", \"b\"]]\n\npairs contains [a, \"b\"] if some a in [\"a\"]\n", "y"},
		"no such pair":                    {"pairs contains [a, \"b\"] if some a in [\"a\"]\n\ndeny contains \"y\" if not [\"a\", input.kind] in pairs\n", "y"},
		"a rule with a path":              {"deny contains r.a.b\n\nr.a[k] := k if some k in [\"b\"]\n", "b"},
		"a sum of thousands":              {"deny contains sprintf(\"%d\", [sum([" + many + "])])\n", "3702000"},
		"the most of thousands":           {"deny contains sprintf(\"%d\", [max([" + many + "])])\n", "1234"},
		"thousands without one":           {"deny contains sprintf(\"%d\", [count({" + strings.Join(names, ", ") + "} - {\"name-7\"})])\n", "2999"},
		"the object itself":               {"deny contains \"y\" if {\n\tx := [input.object, input.pod]\n\tx[0].spec.podTemplate == x[1]\n}\n", "y"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if report := loadAlone(t, e, ruleFile("a", tc.body)); len(report.Broken) > 0 {
				t.Fatal(report.Broken[0].Reason)
			}
			d := e.Evaluate(context.Background(), requestOf(t))
			if len(d.Findings) != 1 || d.Findings[0].Failure || d.Findings[0].Message != tc.want {
				t.Errorf("want %q alone, got %s", tc.want, show(t, d.Findings))
			}
		})
	}
}

// Each error is kept until the end of the run, with the text that it is about.
func TestARuleCannotErrWithoutEnd(t *testing.T) {
	const most = 64 << 20
	e := newEngine(t, engine.WithBudget(time.Minute, time.Second))
	loadAlone(t, e, ruleFile("a", strings.Replace(body(loop(5, `"x"`)), "}\n", "\tto_number(concat(\"\", [a, b, c, d, e, \"x\"])) > 0\n}\n", 1)))
	in := requestOf(t)
	cost := allocated(func() {
		d := e.Evaluate(context.Background(), in)
		if text := show(t, d); !d.Denied() || !strings.Contains(text, "to_number") {
			t.Errorf("want the error of the rule, got %.2000s", text)
		}
	})
	if cost > most {
		t.Errorf("it took %d MB, want at most %d", cost>>20, most>>20)
	}
}
