// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// shelf is an inventory that counts what it is asked for.
type shelf struct {
	data  map[engine.Data]map[string]any
	fault error
	asked []string
}

func (s *shelf) List(_ context.Context, data engine.Data, namespace string) (map[string]any, error) {
	s.asked = append(s.asked, string(data)+" "+namespace)
	return s.data[data], s.fault
}

func declaring(id, data, body string) engine.Module {
	m := ruleFile(id, body)
	m.Content = []byte(strings.Replace(string(m.Content), "#   severity", "#   data: ["+data+"]\n#   severity", 1))
	return m
}

func TestRulesReadWhatTheyDeclare(t *testing.T) {
	cases := map[string]struct {
		rules []engine.Module
		fault error
		// want are rule and message, a failure as FAILED.
		want  []string
		asked []string
	}{
		"A member": {
			rules: []engine.Module{declaring("a", "namespaces", `deny contains data.inventory.namespaces.team.labels.stage`)},
			want:  []string{"a prod"}, asked: []string{"namespaces home"},
		},
		"By a variable, and by iteration": {
			rules: []engine.Module{declaring("a", "templates", "deny contains x if some x, _ in data.inventory.templates\n\ndeny contains y if {\n\tname := \"small\"\n\ty := data.inventory.templates[name].spec\n}")},
			want:  []string{"a large", "a of small", "a small"}, asked: []string{"templates home"},
		},
		"By an index into a list": {
			rules: []engine.Module{declaring("a", "pools", "deny contains data.inventory.pools.p.list[1]\n\ndeny contains \"beyond\" if data.inventory.pools.p.list[2]\n\ndeny contains \"none\" if data.inventory.pools.p.list.x")},
			want:  []string{"a second"}, asked: []string{"pools home"},
		},
		"What does not exist is undefined": {
			rules: []engine.Module{declaring("a", "runtimeclasses", `deny contains "no gvisor" if not data.inventory.runtimeclasses.gvisor`)},
			want:  []string{"a no gvisor"}, asked: []string{"runtimeclasses home"},
		},
		"Two rules share one answer": {
			rules: []engine.Module{
				declaring("a", "namespaces", `deny contains data.inventory.namespaces.team.labels.stage`),
				declaring("b", "namespaces", `deny contains data.inventory.namespaces.team.labels.stage`),
			},
			want: []string{"a prod", "b prod"}, asked: []string{"namespaces home"},
		},
		"A rule that declares and does not read": {
			rules: []engine.Module{declaring("a", "pools", `deny contains "x" if input.kind == "SandboxClaim"`)},
		},
		"An inventory that is not ready fails its rules only": {
			rules: []engine.Module{
				declaring("a", "namespaces", `deny contains "x" if not data.inventory.namespaces.team`),
				ruleFile("b", `deny contains "y"`+"\n"),
			},
			fault: errors.New("the cache is empty"),
			want:  []string{"a FAILED the cache is empty", "b y"}, asked: []string{"namespaces home", "namespaces home"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &shelf{fault: tc.fault, data: map[engine.Data]map[string]any{
				engine.DataNamespaces: {"team": map[string]any{"labels": map[string]any{"stage": "prod"}}},
				engine.DataTemplates:  {"small": map[string]any{"spec": "of small"}, "large": map[string]any{}},
				engine.DataPools:      {"p": map[string]any{"list": []any{"first", "second"}}},
			}}
			e := newEngine(t, engine.WithInventory(s))
			if report := load(t, e, "", tc.rules...); len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			in := requestOf(t)
			in.Namespace.Name = "home"
			if diff := cmp.Diff(tc.want, told(e.Evaluate(context.Background(), in))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

func told(d engine.Decision) []string {
	var all []string
	for _, f := range d.Findings {
		text := f.Rule + " " + f.Message
		if at := strings.LastIndex(f.Message, ": "); f.Failure && at > 0 {
			text = f.Rule + " FAILED " + f.Message[at+2:]
		}
		all = append(all, text)
	}
	return all
}

func TestAParameterIsReadByAnIndexIntoAList(t *testing.T) {
	rule := ruleFile("a", "deny contains input.parameters.names[1]\n\ndeny contains \"beyond\" if input.parameters.names[2]\n")
	rule.Content = []byte(strings.Replace(string(rule.Content), "#   severity", "#   parameters: {names: {description: Names., type: array, items: {type: string}, default: [first, second]}}\n#   severity", 1))
	if diff := cmp.Diff([]string{"a second"}, told(loaded(t, "", rule).Evaluate(t.Context(), requestOf(t)))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestWithoutAnInventoryRulesThatReadItFail(t *testing.T) {
	e := loaded(t, "", declaring("a", "pools", `deny contains "x" if not data.inventory.pools.a`))
	d := e.Evaluate(context.Background(), requestOf(t))
	if diff := cmp.Diff([]string{"a FAILED what exists in the cluster is not served here"}, told(d)); diff != "" || !d.Denied() {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// Whoever remembers a decision has to know what may change it beside the set and the object.
func TestADecisionSaysWhatItRestsOn(t *testing.T) {
	end := time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
	const exemptions = `exemptions:
- {rule: a, namespaces: [home], reason: r, owner: o, expires: "2027-01-31"}
- {rule: a, objects: ["agent-*"], reason: r, owner: o, expires: "2026-12-01"}
- {rule: a, namespaces: [other], reason: r, owner: o, expires: "2026-11-30"}
- {rule: b, namespaces: [home], reason: r, owner: o, expires: "2026-11-30"}
`
	always := ruleFile("a", `deny contains "always"`)
	never := ruleFile("b", `deny contains "never" if input.object.spec.service == false`)
	cases := map[string]struct {
		rules         []engine.Module
		configuration string
		want          engine.Validity
	}{
		"Nothing else": {rules: []engine.Module{always}},
		"The first exemption that ends, of those that changed a finding": {
			rules: []engine.Module{always, never}, configuration: exemptions, want: engine.Validity{Until: end},
		},
		"Data that was read": {
			rules: []engine.Module{declaring("c", "namespaces, templates", `deny contains "c" if data.inventory.templates.small`)},
			want:  engine.Validity{Read: []engine.Data{engine.DataTemplates}},
		},
		"The time that was read": {
			rules: []engine.Module{ruleFile("c", `deny contains "late" if time.parse_rfc3339_ns(input.now) > 0`)}, want: engine.Validity{Timed: true},
		},
		"The time by the clock": {
			rules: []engine.Module{ruleFile("c", `deny contains "late" if time.now_ns() > 0`)}, want: engine.Validity{Timed: true},
		},
		"A time that nothing is compared with": {
			rules: []engine.Module{ruleFile("c", "deny contains \"late\" if {\n\tinput.object.spec.shutdownTime > input.now\n}")},
		},
		"A rule that reads the time and failed": {
			rules: []engine.Module{ruleFile("c", `deny contains "c" if time.parse_rfc3339_ns(concat("", [input.now, "?"])) > 0`)}, want: engine.Validity{Timed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engine.WithInventory(&shelf{data: map[engine.Data]map[string]any{engine.DataTemplates: {}}}))
			if _, err := e.Load(t.Context(), tc.rules, configured(t, tc.configuration)); err != nil {
				t.Fatal(err)
			}
			in := requestOf(t)
			in.Namespace.Name, in.Now = "home", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			if diff := cmp.Diff(tc.want, e.Evaluate(t.Context(), in).Validity, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("validity (-want +got):\n%s", diff)
			}
		})
	}
}
