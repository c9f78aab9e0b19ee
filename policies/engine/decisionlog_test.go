// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// logged evaluates and returns the lines.
func logged(t *testing.T, options engine.DecisionLogOptions, inputs ...engine.Input) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	options.Writer = &out
	log, err := engine.NewDecisionLog(options)
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, engine.WithDecisionLog(log), engine.WithClock(clocktesting.NewFakePassiveClock(time.Unix(1000, 0))))
	load(t, e, "")
	for _, in := range inputs {
		e.Evaluate(context.Background(), in)
	}
	log.Close()
	var lines []map[string]any
	for text := range strings.Lines(out.String()) {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, decoded)
	}
	return lines
}

func secretive(t *testing.T) engine.Input {
	t.Helper()
	in := requestOf(t, "hostPID: true", `containers: [{name: a, image: "a:1", env: [{name: TOKEN, value: s3cret}], resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
	in.ID, in.Namespace.Name = "request-1", "team"
	in.User = engine.UserInfo{Username: "ann", Groups: []string{"team"}}
	in.Object["metadata"] = map[string]any{"name": "workspace"}
	return in
}

func TestDecisionLog(t *testing.T) {
	lines := logged(t, engine.DecisionLogOptions{}, secretive(t))
	if len(lines) != 1 {
		t.Fatal(show(t, lines))
	}
	l := lines[0]
	result := l["result"].(map[string]any)
	if result["denied"] != true || len(result["rules"].([]any)) < 10 || len(result["findings"].([]any)) != 3 {
		t.Errorf("result: %s", show(t, result))
	}
	if digest, _ := l["policy_digest"].(string); !strings.HasPrefix(digest, "sha256:") || l["latency_ms"] != 0.0 {
		t.Errorf("line: %s", show(t, l))
	}
	want := map[string]any{
		"operation": "CREATE", "kind": "Sandbox", "source": "admission", "namespace": "team", "name": "workspace", "tier": "trusted",
		"user": map[string]any{"username": "ann", "groups": []any{"team"}},
	}
	if diff := cmp.Diff(want, l["input"]); diff != "" || l["decision_id"] != "request-1" || l["timestamp"] != "1970-01-01T00:16:40Z" {
		t.Errorf("input (-want +got):\n%s\n%s", diff, show(t, l))
	}
}

func mask(t *testing.T, body string) *engine.Mask {
	t.Helper()
	m, err := engine.NewMask(t.Context(), "mask.rego", []byte("package system.log\n\n"+body))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const maskEnv = `
mask contains "/input/user/groups"

mask contains {"op": "upsert", "path": path, "value": "**"} if {
	some i, container in input.input.object.spec.podTemplate.spec.containers
	some j, _ in container.env
	path := sprintf("/input/object/spec/podTemplate/spec/containers/%d/env/%d/value", [i, j])
}
`

func TestDecisionLogIsMasked(t *testing.T) {
	l := logged(t, engine.DecisionLogOptions{Mask: mask(t, maskEnv+"\nmask contains \"/input/nothing/here\"\n")}, secretive(t))[0]
	text := show(t, l)
	if strings.Contains(text, "s3cret") || !strings.Contains(text, `"**"`) || !strings.Contains(text, "TOKEN") {
		t.Errorf("line: %s", text)
	}
	if _, found := l["input"].(map[string]any)["user"].(map[string]any)["groups"]; found {
		t.Errorf("what is to be removed is there: %s", text)
	}
	if diff := cmp.Diff([]any{"/input/user/groups"}, l["erased"]); diff != "" {
		t.Errorf("erased (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"/input/object/spec/podTemplate/spec/containers/0/env/0/value"}, l["masked"]); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}

func TestAMaskThatFailsShowsNothing(t *testing.T) {
	for name, body := range map[string]string{
		"A builtin errs":     `mask contains "/input/user" if to_number(input.decision_id) > 1`,
		"A path elsewhere":   `mask contains "/policy_digest"`,
		"An unknown op":      `mask contains {"op": "replace", "path": "/input/user"}`,
		"An unknown field":   `mask contains {"op": "remove", "pth": "/input/user"}`,
		"Something unheard":  `mask contains 7`,
		"A value in a value": `mask contains [] if true`,
	} {
		t.Run(name, func(t *testing.T) {
			l := logged(t, engine.DecisionLogOptions{Mask: mask(t, body)}, secretive(t))[0]
			if l["input"] != nil || l["mask_error"] == nil || l["result"] == nil {
				t.Errorf("line: %s", show(t, l))
			}
		})
	}
}

// A path that is undefined hides nothing, although the mask means to; that its conditions do not hold is no fault.
func TestAMaskWhoseOperationIsUndefinedShowsNothing(t *testing.T) {
	const each = "some i, c in input.input.object.spec.podTemplate.spec.containers"
	for name, tc := range map[string]struct {
		body     string
		withheld bool
	}{
		"a path by a part that is absent":      {"mask contains path if {\n\t" + each + "\n\tpath := sprintf(\"/input/object/spec/podTemplate/spec/containers/%d/%s\", [i, c.nothing])\n}", true},
		"a path in the head":                   {"mask contains concat(\"\", [\"/input/object/\", input.input.object.nothing])", true},
		"the value in its place":               {"mask contains {\"op\": \"upsert\", \"path\": \"/input/object\", \"value\": input.input.object.nothing}", true},
		"a condition about something absent":   {"mask contains \"/input/object\" if input.input.object.nothing == 1", false},
		"an iteration over something absent":   {"mask contains sprintf(\"/input/object/%s\", [x]) if some x in input.input.object.nothing", false},
		"a finding without a value, asked for": {"mask contains \"/input/object\" if {\n\tsome f in input.result.findings\n\tf.exemption == \"x\"\n}", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := logged(t, engine.DecisionLogOptions{Mask: mask(t, tc.body)}, secretive(t))[0]
			reason, failed := l["mask_error"].(string)
			if failed != tc.withheld || (l["input"] == nil) != tc.withheld || (failed && !strings.Contains(reason, "eval_builtin_error at mask.rego:")) {
				t.Errorf("withheld %t because %q, want %t: %s", failed, reason, tc.withheld, show(t, l))
			}
		})
	}
}

// What a mask, which then fails, would have hidden is not in the line, not even in the reason.
func TestAMaskThatFailsTellsNoValue(t *testing.T) {
	const secret = "s3cret"
	of := "some e in input.input.object.spec.podTemplate.spec.containers[0].env"
	for name, tc := range map[string]struct{ body, reason string }{
		"an error about a value":     {"mask contains \"/input\" if {\n\t" + of + "\n\tto_number(e.value) > 1\n}", "eval_builtin_error at mask.rego:"},
		"a path made of a value":     {"mask contains e.value if {\n\t" + of + "\n}", "the mask has something else"},
		"an object made of a value":  {"mask contains {\"op\": e.value} if {\n\t" + of + "\n}", "the mask has something else"},
		"two values for one name":    {"path := e.value if {\n\t" + of + "\n}\n\npath := \"/input\"\n\nmask contains path", "eval_conflict_error at mask.rego:"},
		"more than it may make":      {"mask contains x if {\n\t" + of + "\n\tx := replace(sprintf(\"%9999d\", [1]), \" \", sprintf(\"%9999s\", [e.value]))\n}", "eval_builtin_error at mask.rego:"},
		"an error that an index has": {"mask contains \"/input\" if startswith(input.input.object.spec, \"s\")", "eval_type_error at mask.rego:"},
		"a builtin that panics":      {"mask contains \"/input\" if test.panic(input.input.object.spec.podTemplate.spec.containers[0].env[0].value)", "it panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			l := logged(t, engine.DecisionLogOptions{Mask: mask(t, tc.body)}, secretive(t))[0]
			reason, _ := l["mask_error"].(string)
			if text := show(t, l); strings.Contains(text, secret) || strings.Contains(text, "workspace") || l["input"] != nil || !strings.Contains(reason, tc.reason) {
				t.Errorf("want a line without values because %q, got %s", tc.reason, text)
			}
			result := l["result"].(map[string]any)
			if result["denied"] != true || len(result["findings"].([]any)) != 3 || l["decision_id"] != "request-1" {
				t.Errorf("which rules denied what is gone: %s", show(t, l))
			}
			for _, f := range result["findings"].([]any) {
				finding := f.(map[string]any)
				if finding["message"] != "withheld: the mask failed" || finding["field"] != nil || finding["value"] != nil || finding["remediation"] != nil || finding["rule"] == nil {
					t.Errorf("a finding tells more than its rule: %s", show(t, finding))
				}
			}
		})
	}
}

// A mask that does not end holds up its line for a moment, a few times, and no decision.
func TestAMaskThatHangsIsLeftBehind(t *testing.T) {
	within(t, func(t *testing.T, h *engine.Hold) {
		t.Helper()
		var out bytes.Buffer
		log, err := engine.NewDecisionLog(engine.DecisionLogOptions{Writer: &out, Mask: mask(t, "mask contains \"/input/object\" if test.hold(\"a\")\n")})
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, engine.WithDecisionLog(log))
		load(t, e, "")
		watch := clock.RealClock{}
		begun := watch.Now()
		for range 5 {
			e.Evaluate(context.Background(), secretive(t))
		}
		if took := watch.Since(begun); took > 0 || log.Dropped() > 0 {
			t.Errorf("the decisions took %s, and %d lines were dropped", took, log.Dropped())
		}
		log.Close()
		if took := watch.Since(begun); took > 2*time.Second || h.Calls() != 3 || log.Withheld() != 5 {
			t.Errorf("%d calls held the log up for %s, and %d lines are withheld, want three, less than two seconds, and all", h.Calls(), took, log.Withheld())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 5 || strings.Contains(out.String(), "s3cret") || !strings.Contains(lines[0], "it did not finish in time") ||
			!strings.Contains(lines[4], "3 times in a row and is not run any more") {
			t.Errorf("lines: %s", out.String())
		}
		h.Release()
	})
}

func TestMasksThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"No Rego":                  {"package system.log\nmask contains", "mask.rego"},
		"Another package":          {"package a.b\nmask contains \"/input\"", "a mask is of package system.log"},
		"No rule":                  {"package system.log\nmasks contains \"/input\"", "no rule mask"},
		"A rule that is no set":    {"package system.log\nmask := [\"/input\"]", "no rule mask"},
		"A builtin not for rules":  {"package system.log\nmask contains http.send({}).body", "not allowed"},
		"A field that is none":     {"package system.log\nmask contains \"/input/object\" if input.input.usr.username == \"ann\"", "mask.rego:2: rego_type_error: undefined ref: input.input.usr"},
		"The remedy for it":        {"package system.log\nmask contains \"/input/object\" if input.labels.id", "a line of the decision log has no such field"},
		"A type that it has not":   {"package system.log\nmask contains \"/input/object\" if input.result.denied == \"true\"", "match error"},
		"A rule of another's data": {"package system.log\nmask contains x if some x in nosuch", "nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.NewMask(t.Context(), "mask.rego", []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDecisionLogIsASample(t *testing.T) {
	var inputs []engine.Input
	for i := range 200 {
		in := requestOf(t)
		in.ID = fmt.Sprintf("request-%d", i)
		inputs = append(inputs, in)
	}
	inputs = append(inputs, secretive(t))
	for sample, bounds := range map[float64][2]int{0: {1, 1}, 0.25: {25, 85}, 1: {201, 201}} {
		if got := len(logged(t, engine.DecisionLogOptions{Sample: sample}, inputs...)); got < bounds[0] || got > bounds[1] {
			t.Errorf("sample %v: %d lines, want %d to %d", sample, got, bounds[0], bounds[1])
		}
	}
	if _, err := engine.NewDecisionLog(engine.DecisionLogOptions{Writer: &bytes.Buffer{}, Sample: 2}); err == nil {
		t.Error("a sample of 2 is accepted")
	}
}

// stuck is a writer that waits until it is released.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func TestDecisionLogNeverBlocks(t *testing.T) {
	release := make(chan struct{})
	log, err := engine.NewDecisionLog(engine.DecisionLogOptions{Writer: stuck{release}, Sample: 1, Queue: 2})
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, engine.WithDecisionLog(log))
	load(t, e, "")
	for range 10 {
		e.Evaluate(context.Background(), requestOf(t))
	}
	if log.Dropped() < 7 {
		t.Errorf("%d dropped, want at least 7", log.Dropped())
	}
	close(release)
	log.Close()
	e.Evaluate(context.Background(), requestOf(t))
	if log.Dropped() < 8 || log.Failed() > 0 {
		t.Errorf("after the end: %d dropped, %d failed", log.Dropped(), log.Failed())
	}
}
