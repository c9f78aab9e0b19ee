// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestText(t *testing.T) {
	cases := map[string]struct {
		finding engine.Finding
		want    string
	}{
		"a whole finding": {
			engine.Finding{Rule: "r", Field: "spec.a", Value: "v", Message: "is wrong", Remediation: "Set b."}, "r: spec.a (v): is wrong. Fix: Set b.",
		},
		"without a value":             {engine.Finding{Rule: "r", Field: "spec.a", Message: "is missing."}, "r: spec.a: is missing."},
		"without a field":             {engine.Finding{Rule: "r", Value: "v", Message: "cannot be judged"}, "r: cannot be judged."},
		"on one line, whatever it is": {engine.Finding{Rule: "r", Field: "f", Value: "a\nb", Message: "x\n\ty"}, "r: f (a b): x y."},
		"the value of a variable is a secret": {
			engine.Finding{Rule: "r", Field: "spec.podTemplate.spec.containers[0].env[1].value", Value: "secret", Message: "m"},
			"r: spec.podTemplate.spec.containers[0].env[1].value: m.",
		},
		"so is that of a claim": {
			engine.Finding{Rule: "r", Field: "spec.env[0]", Value: `{"name":"A","value":"secret"}`, Message: "m"}, "r: spec.env[0]: m.",
		},
		"the name of a variable is none": {engine.Finding{Rule: "r", Field: "spec.env[0].name", Value: "A", Message: "m"}, "r: spec.env[0].name (A): m."},
		"a container shown as a whole may hold secrets": {
			engine.Finding{Rule: "r", Field: "spec.podTemplate.spec.containers[0]", Value: `{"env":[{"name":"A","value":"secret"}]}`, Message: "m"},
			"r: spec.podTemplate.spec.containers[0]: m.",
		},
		"so may the command of a hook": {
			engine.Finding{Rule: "r", Field: "spec.podTemplate.spec.containers[0].lifecycle", Value: `{"preStop":{"exec":{"command":["login","secret"]}}}`, Message: "m"},
			"r: spec.podTemplate.spec.containers[0].lifecycle: m.",
		},
		"and a list":                 {engine.Finding{Rule: "r", Field: "spec.a", Value: ` ["secret"]`, Message: "m"}, "r: spec.a: m."},
		"what a terminal would obey": {engine.Finding{Rule: "r", Field: "spec.labels[a\nb\x1b[2J]", Value: "\u202egpj", Message: "\x00m"}, "r: spec.labels[a b\ufffd[2J] (\ufffdgpj): \ufffdm."},
		"a long key is cut":          {engine.Finding{Rule: "r", Field: strings.Repeat("k", 5000), Message: "m"}, "r: " + strings.Repeat("k", 397) + "...: m."},
		"a long value is cut":        {engine.Finding{Rule: "r", Field: "f", Value: strings.Repeat("ä", 100), Message: "m"}, "r: f (" + strings.Repeat("ä", 48) + "...): m."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := text(tc.finding); got != tc.want {
				t.Errorf("text() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheMessageCountsWhatTheEngineDidNotList(t *testing.T) {
	findings := []engine.Finding{{Rule: "engine", Enforcement: engine.Deny, Omits: 1301, Message: "1301 more findings are not listed"}}
	for range 25 {
		findings = append(findings, engine.Finding{Rule: "r", Enforcement: engine.Deny, Field: "f", Message: "m"})
	}
	lines := strings.Split(message(findings), "\n")
	if first, last := lines[0], lines[len(lines)-1]; first != "1326 findings:" || last != "and 1306 more, see status.details.causes" || len(lines) != maxListed+2 {
		t.Errorf("the message begins with %q and ends with %q after %d lines", first, last, len(lines))
	}
}

func TestAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	finding := engine.Finding{Rule: "r", Field: long, Value: long, Message: long, Remediation: long}
	var v verdict
	for range 500 {
		for _, enforcement := range []engine.Enforcement{engine.Deny, engine.Warn} {
			finding.Enforcement = enforcement
			v.findings = append(v.findings, finding)
		}
	}
	response := respond(admission.Request{}, v)
	raw, err := json.Marshal(response.AdmissionResponse)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 200_000 || len(response.Warnings) != maxWarnings+1 || len(response.Result.Details.Causes) != maxCauses {
		t.Errorf("%d bytes, %d warnings, %d causes: want them bounded", len(raw), len(response.Warnings), len(response.Result.Details.Causes))
	}
	if lines := strings.Split(response.Result.Message, "\n"); len(lines) != maxListed+2 || lines[len(lines)-1] != "and 480 more, see status.details.causes" {
		t.Errorf("the message ends with %q after %d lines", lines[len(lines)-1], len(lines))
	}
}
