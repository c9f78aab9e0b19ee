// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
)

// A finding that cannot be told because something in it is undefined is a failure of the rule: silence would allow.
func TestAFindingWithSomethingUndefinedIsAFailure(t *testing.T) {
	const absent = "input.object.spec.shutdownTime"
	for name, body := range map[string]string{
		"the head itself":                       "deny contains " + absent,
		"a field of the head":                   `deny contains {"message": "x", "value": ` + absent + `}`,
		"a text of the head":                    `deny contains sprintf("%s", [` + absent + `])`,
		"a text in the body":                    "deny contains msg if {\n\tinput.kind == \"Sandbox\"\n\tmsg := sprintf(\"%s\", [" + absent + "])\n}",
		"a text before the condition":           "deny contains msg if {\n\tmsg := concat(\"\", [" + absent + "])\n\tinput.kind == \"Sandbox\"\n}",
		"a text of a text":                      "deny contains {\"message\": msg} if {\n\tname := [" + absent + "]\n\tmsg := sprintf(\"%s\", name)\n\tinput.kind\n}",
		"a finding in the body":                 "deny contains finding if {\n\tfinding := {\"message\": \"x\", \"field\": " + absent + "}\n}",
		"a field of a member":                   "deny contains sprintf(\"%s\", [c.workingDir]) if some c in input.pod.spec.containers",
		"a rule that has no value":              "deny contains sprintf(\"%s\", [name])\n\nname := " + absent,
		"a warning":                             "warn contains " + absent + "\n\ndeny contains \"other\" if false",
		"one of two containers":                 "deny contains finding if {\n\tsome c in input.pod.spec.containers\n\tfinding := {\"message\": sprintf(\"%s\", [c.securityContext.runAsUser])}\n}",
		"what a function gives within the text": "deny contains sprintf(\"%s\", [f(input.kind)])\n\nf(x) := x if x == \"x\"",
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if report := loadAlone(t, e, ruleFile("a", body+"\n")); len(report.Broken) > 0 {
				t.Fatal(report.Broken[0].Reason)
			}
			d := e.Evaluate(context.Background(), requestOf(t))
			if len(d.Findings) != 1 || !d.Findings[0].Failure || d.Findings[0].Rule != "a" || !strings.Contains(d.Findings[0].Message, "a.rego:1") ||
				!strings.Contains(d.Findings[0].Message, "something in the finding is undefined") {
				t.Errorf("want a failure of the rule, got %s", show(t, d.Findings))
			}
		})
	}
}

// What is a condition stays one: there the undefined means that nothing was found.
func TestWhatIsUndefinedInAConditionIsNoFinding(t *testing.T) {
	const absent = "input.object.spec.shutdownTime"
	for name, body := range map[string]string{
		"a variable of the finding":         "deny contains {\"message\": \"x\", \"value\": value} if value := " + absent,
		"a text that a condition reads":     "deny contains msg if {\n\tmsg := sprintf(\"%s\", [" + absent + "])\n\tmsg != \"x\"\n}",
		"a text that a closure reads":       "deny contains msg if {\n\tmsg := sprintf(\"%s\", [" + absent + "])\n\tcount([1 | msg == \"x\"]) == 0\n}",
		"what a function finds in the head": "deny contains f(input.kind)\n\nf(x) := x if x == \"x\"",
		"what a function finds":             "deny contains finding if {\n\tfinding := f(input.kind)\n}\n\nf(x) := x if x == \"x\"",
		"all members of nothing":            "deny contains input.pod.spec.containers[0].env[_].name",
		"a member of nothing by a name":     "deny contains {\"message\": input.pod.spec.containers[i].env[j].name}",
		"a finding of members of nothing":   "deny contains finding if {\n\tinput.kind\n\tfinding := {\"message\": input.pod.spec.containers[_].env[_].name}\n}",
		"a condition that does not hold":    "deny contains " + absent + " if input.kind == \"x\"",
		"declared, members of nothing":      "deny contains msg if {\n\tsome i\n\tmsg := sprintf(\"%s\", [input.pod.spec.initContainers[i].name])\n}",
		"declared, and no member is found":  "deny contains msg if {\n\tsome i\n\tnot input.pod.spec.containers[i].name\n\tmsg := sprintf(\"%s\", [input.pod.spec.containers[i].name])\n}",
		"declared and compared":             "deny contains msg if {\n\tsome i\n\t99 < i\n\tmsg := sprintf(\"%s\", [input.pod.spec.containers[i].name])\n}",
		"a template of something absent":    "deny contains $\"{" + absent + "}\" if input.kind == \"x\"",
		"a finding that a variable gives":   "deny contains finding if some finding in {\"x\" | " + absent + "}",
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if report := loadAlone(t, e, ruleFile("a", body+"\n")); len(report.Broken) > 0 {
				t.Fatal(report.Broken[0].Reason)
			}
			if d := e.Evaluate(context.Background(), requestOf(t)); len(d.Findings) > 0 {
				t.Errorf("want no finding, got %s", show(t, d.Findings))
			}
		})
	}
}

// A variable that a condition declares and only the finding gives a value to iterates.
func TestAFindingOfADeclaredVariableFindsAll(t *testing.T) {
	e := newEngine(t)
	loadAlone(t, e, ruleFile("a", "deny contains msg if {\n\tsome i\n\tmsg := sprintf(\"%s\", [[\"x\", \"y\"][i]])\n}\n"))
	if d := e.Evaluate(context.Background(), requestOf(t)); len(d.Findings) != 2 || len(failuresOf(d)) > 0 {
		t.Errorf("want two findings, got %s", show(t, d.Findings))
	}
}

// All members are found where a head has several.
func TestAHeadOfSeveralMembersFindsAll(t *testing.T) {
	e := newEngine(t)
	loadAlone(t, e, ruleFile("a", "deny contains [\"x\", \"y\"][_]\n\ndeny contains sprintf(\"%s\", [name]) if some name in [\"z\"]\n"))
	if d := e.Evaluate(context.Background(), requestOf(t)); len(d.Findings) != 3 || len(failuresOf(d)) > 0 {
		t.Errorf("want three findings, got %s", show(t, d.Findings))
	}
}
