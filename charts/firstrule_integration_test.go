// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// author is somebody who writes a rule by the README of the policies, in a folder.
type author struct {
	served
	*testing.T

	folder, kubeconfig, path string
	readme                   string
}

func (s served) author(t *testing.T) *author {
	t.Helper()
	kubectl, err := apiserver.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.server.Kubeconfig("ann", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../policies/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return &author{s, t, t.TempDir(), kubeconfig, filepath.Dir(kubectl) + ":" + os.Getenv("PATH"), string(readme)}
}

// shell runs a command in the folder and returns what it prints.
func (a *author) shell(ctx context.Context, command string) (string, error) {
	a.Helper()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", command)
	run.Dir, run.Env = a.folder, append(os.Environ(), "KUBECONFIG="+a.kubeconfig, "PATH="+a.path)
	output, err := run.CombinedOutput()
	return string(output), err
}

// write puts a file into the folder.
func (a *author) write(name, text string) {
	a.Helper()
	if err := os.WriteFile(filepath.Join(a.folder, name), []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

// block is the first of the README that the expression matches.
func (a *author) block(expression string) string {
	a.Helper()
	match := regexp.MustCompile(expression).FindStringSubmatch(a.readme)
	if match == nil {
		a.Fatalf("the README has no %s", expression)
	}
	return match[1]
}

// answers waits until a Sandbox with these labels gets an answer.
func (a *author) answers(labels, want string) {
	a.Helper()
	a.write("sandbox.yaml", "apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: box, namespace: trusted, labels: {"+labels+"}}\n"+
		"spec: {podTemplate: {spec: {containers: [{name: a, image: \"python:3.12\"}]}}}\n")
	last := ""
	err := wait.PollUntilContextTimeout(a.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		output, err := a.shell(ctx, "kubectl apply --dry-run=server -f sandbox.yaml")
		last = "allowed"
		switch {
		case err != nil:
			last = "refused"
		case strings.Contains(output, "team-label"):
			last = "warned"
		}
		if last != "allowed" && !strings.Contains(output, "team-label") {
			return false, fmt.Errorf("another answer: %s", output)
		}
		return last == want, nil
	})
	if err != nil {
		a.Fatalf("a Sandbox with labels {%s} is %s, want %s: %v", labels, last, want, err)
	}
}

// configure applies the rule with a configuration, by the README's command, which it returns.
func (a *author) configure(configuration string) string {
	a.Helper()
	apply := a.block("(?s)```sh\n(kubectl create configmap [^\n]* --from-file=policy.yaml .*?)```")
	a.write("policy.yaml", configuration)
	if output, err := a.shell(a.Context(), apply); err != nil {
		a.Fatalf("the rule is not configured: %v\n%s", err, output)
	}
	return apply
}

// firstRule goes the way of the README: a rule is applied, recorded, told, enforced, broken and taken away.
func (s served) firstRule(t *testing.T) {
	a := s.author(t)
	rule, apply := a.block("(?s)```rego\n(# METADATA.*?)```"), a.block("(?s)```sh\n(kubectl create configmap .*?)```")
	a.write("team-label.rego", rule)
	if output, err := a.shell(t.Context(), apply); err != nil {
		t.Fatalf("the rule is not applied: %v\n%s", err, output)
	}
	a.answers("", "allowed")
	warns := a.block("(?s)```yaml\n(rules:.*?)```")
	a.configure(warns)
	a.answers("", "warned")
	apply = a.configure(strings.Replace(warns, "Warn", "Deny", 1))
	a.answers("", "refused")
	a.answers("team: green", "refused")
	a.answers("team: red", "allowed")

	a.write("team-label.rego", strings.Replace(rule, "values.string_at", "values.text_at", 1))
	if output, err := a.shell(t.Context(), apply); err == nil || !strings.Contains(output, "team-label.rego") {
		t.Errorf("a rule that does not load is applied: %v\n%s", err, output)
	}
	a.write("team-label.rego", rule)
	// Rules of the library are for the chart's values.
	a.write("policy.yaml", "rules: {registry-allowed: {enforcement: Warn, parameters: {registries: [registry.example.com]}}}\n")
	if output, err := a.shell(t.Context(), apply); err == nil || !strings.Contains(output, "registry-allowed") {
		t.Errorf("a rule is configured twice: %v\n%s", err, output)
	}
	a.answers("team: red", "allowed")
	a.answers("", "refused")

	removal := a.block("(?s)\n(    kubectl -n agent-sandbox-system annotate configmap .*?)\n\n")
	if output, err := a.shell(t.Context(), removal); err != nil {
		t.Fatalf("the rule is not taken away: %v\n%s", err, output)
	}
	a.answers("", "allowed")
}
