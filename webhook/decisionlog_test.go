// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const hideCommands = `package system.log

mask contains "/input/object/spec/podTemplate/spec/containers/0/command"
`

// TestDecisionsAreLoggedMaskedToAFile goes through the flags, as the program does.
func TestDecisionsAreLoggedMaskedToAFile(t *testing.T) {
	dir := t.TempDir()
	mask := filepath.Join(dir, "mask.rego")
	if err := os.WriteFile(mask, []byte(hideCommands), 0o600); err != nil {
		t.Fatal(err)
	}
	o := DecisionLogOptions{Destination: filepath.Join(dir, "decisions"), Sample: 1, Mask: mask}
	log, err := openDecisionLog(t.Context(), o, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := engine.New(engine.WithDecisionLog(log.DecisionLog))
	if err != nil {
		t.Fatal(err)
	}
	library, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Load(t.Context(), library, engine.Configuration{}); err != nil {
		t.Fatal(err)
	}
	container := map[string]any{"name": "a", "image": "a:1", "command": []any{"--token=hunter2"}, "securityContext": map[string]any{"privileged": true}}
	pod := map[string]any{"spec": map[string]any{"containers": []any{container}}}
	d := rules.Evaluate(t.Context(), engine.Input{
		Operation: "CREATE", Kind: engine.KindSandbox, Pod: pod, Object: map[string]any{"spec": map[string]any{"podTemplate": pod}},
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Start(ended); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.Destination)
	if err != nil {
		t.Fatal(err)
	}
	var line struct {
		Digest string `json:"policy_digest"`
		Result struct {
			Denied bool `json:"denied"`
		} `json:"result"`
		Erased []string `json:"erased"`
	}
	if err := json.Unmarshal(data, &line); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	if line.Digest != d.Digest || !line.Result.Denied || len(line.Erased) != 1 || strings.Contains(string(data), "hunter2") || !strings.Contains(string(data), "privileged") {
		t.Errorf("logged: %s", data)
	}
}

func TestLinesOfAMaskThatFailsAreCounted(t *testing.T) {
	dir, registry := t.TempDir(), prometheus.NewRegistry()
	mask := filepath.Join(dir, "mask.rego")
	if err := os.WriteFile(mask, []byte("package system.log\n\nmask contains \"/input\" if to_number(input.input.user.username) > 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := DecisionLogOptions{Destination: filepath.Join(dir, "decisions"), Sample: 1, Mask: mask}
	log, err := openDecisionLog(t.Context(), o, registry)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := engine.New(engine.WithDecisionLog(log.DecisionLog))
	if err != nil {
		t.Fatal(err)
	}
	rules.Evaluate(t.Context(), engine.Input{Operation: "CREATE", Kind: engine.KindSandbox, User: engine.UserInfo{Username: "ann"}})
	log.Close()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		counted[family.GetName()] = family.GetMetric()[0].GetCounter().GetValue()
	}
	want := map[string]float64{
		"agent_sandbox_decision_log_dropped_total": 0, "agent_sandbox_decision_log_failed_total": 0, "agent_sandbox_decision_log_withheld_total": 1,
	}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestDecisionLogThatCannotBeStartedIsAnError(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.rego")
	if err := os.WriteFile(bad, []byte("package other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options DecisionLogOptions
		want    string
	}{
		"a mask that is not there":         {DecisionLogOptions{Destination: decisionsToStdout, Mask: filepath.Join(dir, "none.rego")}, "--decision-log-mask"},
		"a mask of another package":        {DecisionLogOptions{Destination: decisionsToStdout, Mask: bad}, "package system.log"},
		"a file in a folder that is not":   {DecisionLogOptions{Destination: filepath.Join(dir, "none", "log")}, "--decision-log"},
		"a sample that the flags let pass": {DecisionLogOptions{Destination: decisionsToStdout, Sample: 2}, "sample"},
	} {
		if _, err := openDecisionLog(t.Context(), tc.options, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if log, err := openDecisionLog(t.Context(), DecisionLogOptions{}, prometheus.NewRegistry()); log != nil || err != nil {
		t.Errorf("without a destination: %v, %v", log, err)
	}
}

// The audit log of the apiserver and the decision log tell of one request by the same id.
func TestADecisionIsFoundByItsRequest(t *testing.T) {
	var written bytes.Buffer
	log, err := engine.NewDecisionLog(engine.DecisionLogOptions{Writer: &written, Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	handlers := world{log: log}.start(t)
	response := ask(t, handlers[PathValidate], update("tenant", "Sandbox", sandbox(""), sandbox(hostPath)))
	log.Close()
	id := string(response.UID)
	if got := response.AuditAnnotations["decision-id"]; got != id || id == "" {
		t.Errorf("audit annotation decision-id is %q, want the UID of the request, %q", got, id)
	}
	denied := map[string]bool{}
	for data := range bytes.Lines(written.Bytes()) {
		var line struct {
			ID     string `json:"decision_id"`
			Result struct {
				Denied bool `json:"denied"`
			} `json:"result"`
		}
		if err := json.Unmarshal(data, &line); err != nil {
			t.Fatal(err)
		}
		denied[line.ID] = line.Result.Denied
	}
	want := map[string]bool{id: true, id + "-before": false}
	if diff := cmp.Diff(want, denied); diff != "" {
		t.Errorf("decisions by id, and whether they refuse (-want +got):\n%s", diff)
	}
}
