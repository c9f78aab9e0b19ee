// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whoever is refused reads the same answer each time, whatever order maps and rules come
// in: one line and one cause a finding, what is first in one first in the other. A dry run
// gets that answer as well.
func TestAnAnswerIsTheSameEachTime(t *testing.T) {
	var volumes, containers []string
	for i := range 8 {
		volumes = append(volumes, fmt.Sprintf(`{"name": "v%d", "hostPath": {"path": "/%d"}}`, i, i))
		containers = append(containers, fmt.Sprintf(`{"name": "c%d", "image": "a", "securityContext": {"privileged": true}}`, i))
	}
	labels := `"labels": {"agents.x-k8s.io/a": "", "agents.x-k8s.io/b": "", "agents.x-k8s.io/c": ""}`
	object := strings.Replace(sandbox(`, "hostPID": true, "initContainers": [`+strings.Join(containers, ",")+`], "volumes": [`+strings.Join(volumes, ",")+`]`),
		`"name": "box",`, `"name": "box", `+labels+`,`, 1)
	handlers := world{}.start(t)
	request := creation("tenant", "Sandbox", object)
	first := ask(t, handlers[PathValidate], request)
	causes := first.Result.Details.Causes
	lines := strings.Split(first.Result.Message, "\n")
	if want := fmt.Sprintf("%d findings:", len(causes)); lines[0] != want || len(causes) < 20 {
		t.Errorf("the message begins with %q and there are %d causes", lines[0], len(causes))
	}
	seen := map[string]bool{}
	for i, cause := range causes {
		if key := string(cause.Type) + " " + cause.Field; seen[key] {
			t.Errorf("%s is told twice", key)
		} else {
			seen[key] = true
		}
		if i < maxListed && !strings.HasPrefix(lines[i+1], "- "+string(cause.Type)+": "+cause.Field) {
			t.Errorf("line %d is %q, but cause %d is %s %s", i+1, lines[i+1], i+1, cause.Type, cause.Field)
		}
	}
	for turn := range 10 {
		dry := turn%2 == 0
		request.DryRun = &dry
		if diff := cmp.Diff(first, ask(t, handlers[PathValidate], request)); diff != "" {
			t.Fatalf("another answer, dry run %t (-first +then):\n%s", dry, diff)
		}
	}
}

// Nothing of a Secret, of a template of another tenant or of a variable's value is told.
func TestAnAnswerTellsNothingOfOthers(t *testing.T) {
	const secret = "hunter2"
	own := strings.Replace(sandbox(hostPath), `"image"`, `"env": [{"name": "A", "value": "`+secret+`"}, {"name": "A", "value": "`+secret+`"}], "args": ["`+secret+`"], "image"`, 1)
	handlers := world{objects: []client.Object{
		namespace("other", nil),
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "theirs", "namespace": "other"}, "spec": {"podTemplate": {"spec": {"containers": [{"image": "` + secret + `"}]}}}}`),
	}}.start(t)
	for name, request := range map[string]struct{ kind, object string }{
		"a Sandbox":                      {"Sandbox", own},
		"a template":                     {"SandboxTemplate", own},
		"a claim with variables":         {"SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "p"}, "env": [{"name": "A", "value": "` + secret + `"}, {"value": "` + secret + `"}]}}`},
		"a pool of another's template":   {"SandboxWarmPool", `{"metadata": {"name": "p"}, "spec": {"sandboxTemplateRef": {"name": "theirs"}}}`},
		"a pool that names his way over": {"SandboxWarmPool", `{"metadata": {"name": "p"}, "spec": {"sandboxTemplateRef": {"name": "other/theirs"}}}`},
	} {
		answer, err := json.Marshal(ask(t, handlers[PathValidate], creation("tenant", request.kind, request.object)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(answer), secret) {
			t.Errorf("%s: the answer tells %s: %s", name, secret, answer)
		}
	}
}
