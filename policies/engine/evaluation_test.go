// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// endless iterates for longer than any test waits, in steps that can be cancelled.
const endless = `
deny contains "never" if {
	some a in numbers
	some b in numbers
	some c in numbers
	some d in numbers
	some e in numbers
	some f in numbers
	(((((a + b) + c) + d) + e) + f) == 0
}

numbers := {to_number(concat("", [x, y])) | some x in digits; some y in digits}

digits := {"1", "2", "3", "4", "5", "6", "7", "8", "9"}
`

func TestAFaultOfARuleIsAFindingOfThatRule(t *testing.T) {
	cases := map[string]struct {
		body string
		// message is a part of the failure's message.
		message string
		// beside are the messages of findings that the rule made in spite of its fault.
		beside []string
	}{
		"A builtin that errs":                 {`deny contains "x" if to_number(input.pod_path) > 1`, "to_number", nil},
		"A value of the wrong type":           {`deny contains "x" if startswith(input.tier.podSecurity, "a")`, "startswith", nil},
		"A suffix of the wrong type":          {`deny contains "x" if endswith(input.tier.podSecurity, "a")`, "endswith", nil},
		"A pattern on a wrong type":           {`deny contains "x" if glob.match("a*", [], input.tier.podSecurity)`, "glob.match", nil},
		"A wrong type among prefixes":         {`deny contains "x" if strings.any_prefix_match(input.tier.podSecurity, ["a"])`, "any_prefix_match", nil},
		"A wrong type among suffixes":         {`deny contains "x" if strings.any_suffix_match(input.tier.podSecurity, ["a"])`, "any_suffix_match", nil},
		"A wrong type in a function":          {"deny contains \"x\" if f(input.tier.podSecurity)\n\nf(x) if startswith(x, \"a\")", "startswith", nil},
		"An invalid CIDR":                     {`deny contains "x" if net.cidr_contains("010.0.0.0/8", "10.0.0.1")`, "cidr", nil},
		"A division by zero":                  {`deny contains "x" if 1 / count(input.user.groups) > 0`, "divide by zero", nil},
		"A function with two answers":         {"deny contains \"x\" if f(1) > 0\n\nf(x) := x\n\nf(x) := x + 1 if input.kind", "conflict", nil},
		"A rule with two answers":             {"deny contains \"x\" if v > 0\n\nv := 1\n\nv := 2 if input.kind", "conflict", nil},
		"One fault beside a finding":          {"deny contains \"x\" if to_number(input.kind) > 1\n\ndeny contains \"found\" if input.kind", "to_number", []string{"found"}},
		"An evaluation that does not end":     {endless, "did not finish in time", nil},
		"A fault in a warning":                {"warn contains \"x\" if to_number(input.kind) > 1", "to_number", nil},
		"A fault in a function of the helper": {"import data.lib.quantities\n\ndeny contains \"x\" if quantities.shift(input.kind, input.kind) > 1", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engine.WithBudget(4*time.Second, 200*time.Millisecond))
			if report := load(t, e, "", ruleFile("a", tc.body)); len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			d := e.Evaluate(context.Background(), requestOf(t, "hostPID: true"))
			var failures, others []string
			for _, f := range d.Findings {
				switch {
				case f.Rule != "a" && f.Failure:
					t.Errorf("another rule failed: %s", show(t, f))
				case f.Rule == "a" && f.Failure:
					failures = append(failures, f.Message)
				case f.Rule == "a":
					others = append(others, f.Message)
				}
			}
			if len(failures) != 1 || !strings.Contains(failures[0], "rule a could not be evaluated") ||
				!strings.Contains(failures[0], tc.message) || !d.Denied() {
				t.Errorf("failures %q, want one that denies with %q", failures, tc.message)
			}
			if diff := cmp.Diff(tc.beside, others); diff != "" {
				t.Errorf("findings beside the failure (-want +got):\n%s", diff)
			}
			if !strings.Contains(fmt.Sprint(briefs(d.Findings)), "host-namespaces") {
				t.Errorf("the other rules did not judge: %s", show(t, d.Findings))
			}
		})
	}
}

func TestAFailureHasTheEnforcementOfItsRule(t *testing.T) {
	for _, enforcement := range []engine.Enforcement{engine.Deny, engine.Warn, engine.Audit} {
		t.Run(string(enforcement), func(t *testing.T) {
			e := loaded(t, fmt.Sprintf("rules: {a: {enforcement: %s}}", enforcement),
				ruleFile("a", "deny contains \"x\" if to_number(input.kind) > 1\n"))
			d := e.Evaluate(context.Background(), requestOf(t))
			if len(d.Findings) != 1 || d.Findings[0].Enforcement != enforcement {
				t.Errorf("want one finding with %s, got %s", enforcement, show(t, d.Findings))
			}
		})
	}
}

func TestACancelledRequestIsDenied(t *testing.T) {
	e := loaded(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if d := e.Evaluate(ctx, requestOf(t)); !d.Denied() {
		t.Errorf("want failures, got %s", show(t, d))
	}
}

func TestFormsOfFindings(t *testing.T) {
	cases := map[string]struct {
		body string
		want engine.Finding
	}{
		"Text": {`deny contains "no"`, engine.Finding{Message: "no"}},
		"An object with all fields": {
			`deny contains {"message": "no", "field": "a.b", "value": 5, "remediation": "Yes."}`,
			engine.Finding{Message: "no", Field: "a.b", Value: "5", Remediation: "Yes."},
		},
		"An object as value":         {`deny contains {"message": "no", "value": {"a": [1]}}`, engine.Finding{Message: "no", Value: `{"a":[1]}`}},
		"Null and empty are absent":  {`deny contains {"message": "no", "value": null, "remediation": ""}`, engine.Finding{Message: "no"}},
		"An object without message":  {`deny contains {"msg": "no"}`, engine.Finding{Message: `{"msg":"no"}`}},
		"A number":                   {`deny contains 7`, engine.Finding{Message: "7"}},
		"False":                      {`deny contains false`, engine.Finding{Message: "false"}},
		"Undefined within a message": {`deny contains {"message": $"no {input.environment.nothing}"}`, engine.Finding{Message: "no <undefined>"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := loaded(t, "", ruleFile("a", tc.body+"\n")).Evaluate(context.Background(), requestOf(t))
			want := tc.want
			want.Rule, want.Severity, want.Enforcement = "a", engine.High, engine.Deny
			if want.Remediation == "" {
				want.Remediation = "Do not."
			}
			if diff := cmp.Diff([]engine.Finding{want}, d.Findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnIsNeverMoreThanAWarning(t *testing.T) {
	body := "warn contains \"careful\"\n\ndeny contains \"no\"\n"
	d := loaded(t, "", ruleFile("a", body)).Evaluate(context.Background(), requestOf(t))
	if diff := cmp.Diff([]brief{{Rule: "a", Enforcement: "Deny"}, {Rule: "a", Enforcement: "Warn"}}, briefs(d.Findings)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	d = loaded(t, "rules: {a: {enforcement: Audit}}", ruleFile("a", body)).Evaluate(context.Background(), requestOf(t))
	if len(d.Audits()) != 2 {
		t.Errorf("want two audits, got %s", show(t, d))
	}
}

func TestFindingsAreBoundedSortedAndUnique(t *testing.T) {
	body := `
deny contains {"message": sprintf("%d", [i]), "field": f} if {
	some i, _ in input.environment.many
	some f in ["a", "b"]
}

warn contains "mild"

warn contains "milder"

deny contains {"message": input.environment.long, "value": input.environment.long}
`
	in := requestOf(t)
	many := make([]any, 200)
	in.Environment = map[string]any{"many": many, "long": strings.Repeat("ö", 5000)}
	d := loaded(t, "", ruleFile("a", body)).Evaluate(context.Background(), in)
	if len(d.Findings) != 403 {
		t.Fatalf("%d findings, want all 403", len(d.Findings))
	}
	listed := engine.Listed(d.Findings)
	if len(listed) != 100 {
		t.Fatalf("%d findings are listed, want 100", len(listed))
	}
	// 401 refuse and two do not, of which one has a rule of its own.
	for i, want := range []engine.Finding{
		{Enforcement: engine.Warn, Message: "mild"},
		{Enforcement: engine.Deny, Omits: 304, Message: "304 more findings are not listed"},
		{Enforcement: engine.Warn, Omits: 1, Message: "1 more findings are not listed"},
	} {
		if got := listed[97+i]; got.Enforcement != want.Enforcement || got.Omits != want.Omits || got.Message != want.Message {
			t.Errorf("the finding for those that are not listed: %s, want %s", show(t, got), show(t, want))
		}
	}
	for _, f := range d.Findings {
		if len(f.Message) > 1024 || len(f.Value) > 512 || strings.ContainsRune(f.Message, '�') {
			t.Errorf("a finding is too long or cut within a character: %d, %d bytes", len(f.Message), len(f.Value))
		}
	}
	again := loaded(t, "", ruleFile("a", body)).Evaluate(context.Background(), in)
	if diff := cmp.Diff(d, again); diff != "" {
		t.Errorf("two evaluations differ:\n%s", diff)
	}
}

// Of very many findings those that were not kept are counted with those that are not listed.
func TestFindingsThatAreNotKeptAreCounted(t *testing.T) {
	in := requestOf(t)
	in.Environment = map[string]any{"many": make([]any, 4003)}
	body := "deny contains sprintf(\"%d\", [i]) if some i, _ in input.environment.many\n\nwarn contains \"mild\"\n"
	d := loaded(t, "", ruleFile("a", body)).Evaluate(context.Background(), in)
	listed := engine.Listed(d.Findings)
	if omits := listed[99].Omits; len(d.Findings) != 1000 || len(listed) != 100 || omits != 3905 || listed[98].Omits != 0 {
		t.Errorf("of 4004 findings %d are told apart and %d listed, and %d that refuse are not: %s", len(d.Findings), len(listed), omits, show(t, listed[97:]))
	}
}

func TestParametersReachTheRuleHoweverItReadsThem(t *testing.T) {
	parameters := "#   parameters: {max: {type: integer, description: x, default: 1}, names: {type: array, description: x, default: []}}\n"
	for name, body := range map[string]string{
		"By reference":               `deny contains sprintf("%d", [input.parameters.max])`,
		"In a declaration":           "deny contains n if some n in input.parameters.names",
		"In a comprehension":         "deny contains n if some n in {x | some x in input.parameters.names}",
		"In every":                   `deny contains "5" if { every n in input.parameters.names { n == "5" }; count(input.parameters.names) == 1 }`,
		"By a variable":              `deny contains sprintf("%d", [input[p].max]) if p := "parameters"`,
		"As part of the input":       `deny contains sprintf("%d", [object.get(input, ["parameters", "max"], 0)])`,
		"As an argument":             "deny contains sprintf(\"%d\", [f(input)])\n\nf(x) := x.parameters.max",
		"In an object":               `deny contains {"message": sprintf("%d", [x.max])} if x := {"max": input.parameters.max}`,
		"Under a negation":           `deny contains "5" if not input.parameters.max == 1`,
		"In a head":                  "deny contains answer if input.kind\n\nanswer := sprintf(\"%d\", [input.parameters.max])",
		"In an else":                 "deny contains answer if input.kind\n\nanswer := \"x\" if {\n\tfalse\n} else := sprintf(\"%d\", [input.parameters.max])",
		"In a template string":       "deny contains $\"{input.parameters.max}\"",
		"By the whole of them":       `deny contains sprintf("%d", [object.get(input.parameters, "max", 0)])`,
		"By a variable of their own": `deny contains sprintf("%d", [input.parameters[p]]) if p := "max"`,
	} {
		t.Run(name, func(t *testing.T) {
			m := ruleFile("a", body+"\n")
			m.Content = []byte(strings.Replace(string(m.Content), "#   severity", parameters+"#   severity", 1))
			other := ruleFile("b", "deny contains sprintf(\"%d\", [input.parameters.max])\n")
			other.Content = []byte(strings.Replace(string(other.Content), "#   severity", parameters+"#   severity", 1))
			e := newEngine(t)
			report := load(t, e, `rules: {a: {parameters: {max: 5, names: ["5"]}}, b: {parameters: {max: 7}}}`, m, other)
			if len(report.Broken) > 0 {
				t.Fatal(show(t, report))
			}
			var got []string
			for _, f := range e.Evaluate(context.Background(), requestOf(t)).Findings {
				got = append(got, f.Rule+f.Message)
			}
			if diff := cmp.Diff([]string{"a5", "b7"}, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheInputIsAsDocumented(t *testing.T) {
	body := `
deny contains json.marshal(object.remove(input, ["object", "pod", "tier", "containers", "volumes", "claims", "owners", "sizes", "totals", "started", "resources", "requested", "pod_labels", "pod_annotations", "claim_annotations"]))
`
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	in := requestOf(t)
	in.User = engine.UserInfo{Username: "ann", UID: "1"}
	in.Namespace = engine.NamespaceInfo{Name: "team", Labels: map[string]string{"a": "b"}}
	in.Environment = map[string]any{"stage": "prod"}
	e := newEngine(t, engine.WithClock(clocktesting.NewFakePassiveClock(now)))
	load(t, e, "", ruleFile("a", body))
	d := e.Evaluate(context.Background(), in)
	want := `{"environment":{"stage":"prod"},"faults":{},"highest":{"cpu":1000,"memory":1073741824000},"images":{"spec.podTemplate.spec.containers[0].image":{"digest":"",` +
		`"registry":"docker.io","repository":"docker.io/library/python","tag":"3.12-slim"}},"kind":"Sandbox","limited":{"cpu":["spec.podTemplate.spec.containers[0]"],` +
		`"memory":["spec.podTemplate.spec.containers[0]"]},"namespace":{"annotations":{},"labels":{"a":"b"},"name":"team"},` +
		`"now":"2026-11-29T12:00:00Z","operation":"CREATE","pod_path":"spec.podTemplate","quantities":{` +
		`"spec.podTemplate.spec.containers[0].resources.limits.cpu":{"bytes":1,"milli":1000},` +
		`"spec.podTemplate.spec.containers[0].resources.limits.memory":{"bytes":1073741824,"milli":1073741824000},` +
		`"spec.volumeClaimTemplates[0].spec.resources.requests.storage":{"bytes":5368709120,"milli":5368709120000}},` +
		`"source":"admission","tier_name":"trusted","user":{"groups":[],"uid":"1","username":"ann"}}`
	if len(d.Findings) != 1 {
		t.Fatal(show(t, d))
	}
	if diff := cmp.Diff(want, d.Findings[0].Message); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestTimeIsThatOfTheRequest(t *testing.T) {
	body := "deny contains sprintf(\"%d\", [time.now_ns()])\n"
	in := requestOf(t)
	in.Now = time.Unix(17, 0)
	d := loaded(t, "", ruleFile("a", body)).Evaluate(context.Background(), in)
	if len(d.Findings) != 1 || d.Findings[0].Message != "17000000000" {
		t.Error(show(t, d))
	}
}

func TestKindsAndOperationsThatAreNotJudged(t *testing.T) {
	e := loaded(t, "")
	in := requestOf(t, "hostPID: true")
	in.Operation = "DELETE"
	if d := e.Evaluate(context.Background(), in); len(d.Findings) > 0 {
		t.Errorf("an object on its way out is judged: %s", show(t, d))
	}
	in.Operation, in.Kind = "CREATE", "Sandbx"
	if d := e.Evaluate(context.Background(), in); !d.Denied() {
		t.Error("a kind without rules is allowed")
	}
	claim := engine.Input{Operation: "CREATE", Kind: engine.KindSandboxClaim, Tier: trusted(), Object: map[string]any{}}
	if d := e.Evaluate(context.Background(), claim); len(d.Findings) > 0 {
		t.Errorf("a claim without a template has findings: %s", show(t, d))
	}
	claim.Kind = engine.KindSandbox
	if d := e.Evaluate(context.Background(), claim); !d.Denied() {
		t.Error("a Sandbox without a Pod is allowed")
	}
}
