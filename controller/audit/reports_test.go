// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestObjectsWithTheSameFindingShareAResult(t *testing.T) {
	exempt := found("b", engine.Audit)
	exempt.Exemption = "until 2027"
	other := found("a", engine.Deny)
	other.Content, other.Amount = "other", 2
	failure := found("c", engine.Deny)
	failure.Failure = true
	reports := reportsOf([]*entry{
		sandboxWith("two", found("a", engine.Deny)), sandboxWith("one", other, exempt),
		sandboxWith("three", found("w", engine.Warn)), sandboxWith("four"), sandboxWith("five", exempt), sandboxWith("six", failure),
	})
	if len(reports) != 1 {
		t.Fatalf("%d reports, want 1: every object is a Sandbox", len(reports))
	}
	if diff := cmp.Diff(reportsv1alpha1.ReportSummary{Pass: 1, Fail: 2, Warn: 1, Error: 1, Skip: 1}, reports[0].summary); diff != "" {
		t.Errorf("summary, which counts each object once (-want +got):\n%s", diff)
	}
	var got []string
	for _, result := range reports[0].results("team", map[string]string{"a": "isolation"}) {
		var names []string
		for _, subject := range result.Subjects {
			names = append(names, subject.Name)
		}
		got = append(got, fmt.Sprintf("%s %s %s [%s] of %s", result.Result, result.Policy, result.Category, strings.Join(names, " "), result.Properties["objects"]))
	}
	want := []string{"fail a isolation [one two] of 2", "error c  [six] of 1", "warn w  [three] of 1", "skip b  [five one] of 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestAResultSaysWhatToDoAndKeepsTheValue(t *testing.T) {
	secret := found("a", engine.Warn)
	secret.Value = "s3cr3t"
	r := reportsOf([]*entry{sandboxWith("one", secret)})[0]
	want := []reportsv1alpha1.ReportResult{{
		Source: "agent-sandbox", Policy: "a", Severity: "high", Result: "warn", Description: "spec.x: broken. Fix: Mend it.",
		Properties: map[string]string{"enforcement": "Warn", "field": "spec.x", "objects": "1"},
		Subjects: []corev1.ObjectReference{
			{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox", Namespace: "team", Name: "one", UID: "uid-one"},
		},
	}}
	if diff := cmp.Diff(want, r.results("team", nil)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestAReportHasABoundThatNoTextExceeds(t *testing.T) {
	// The engine cuts longer texts; what it says of a rule it does not.
	message, text, endless := strings.Repeat("x", 1024), strings.Repeat("x", 512), strings.Repeat("x", 1<<20)
	categories := map[string]string{}
	var entries []*entry
	for i := range 200 {
		f := found(fmt.Sprintf("rule-%03d", i), engine.Deny)
		f.Message, f.Remediation, f.Field, f.Exemption, categories[f.Rule] = message, text, text, text, endless
		for j := range 30 {
			entries = append(entries, sandboxWith(fmt.Sprintf("%s-%d-%d", strings.Repeat("n", 50), i, j), f))
		}
	}
	reports := reportsOf(entries)
	results := reports[0].results("team", categories)
	if len(results) != maxResults {
		t.Fatalf("%d results, want %d", len(results), maxResults)
	}
	last := results[maxResults-1]
	if last.Properties["omitted"] != "101" || last.Result != "skip" {
		t.Errorf("the last result is %+v, want one that counts the 101 that are missing", last)
	}
	if n := len(results[0].Subjects); n != maxSubjects || results[0].Properties["objects"] != "30" {
		t.Errorf("a result names %d objects of %s, want %d of 30", n, results[0].Properties["objects"], maxSubjects)
	}
	if reports[0].summary.Skip != len(entries) {
		t.Errorf("the summary counts %d objects, want %d", reports[0].summary.Skip, len(entries))
	}
	raw, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	if most := 1 << 20; len(raw) > most {
		t.Errorf("the report has %d bytes, want %d at most: etcd stores one and a half times as much", len(raw), most)
	}
}

func TestEachKindHasAReportOfItsOwnAndCleanOnesHaveNone(t *testing.T) {
	claim := sandboxWith("claim", found("a", engine.Warn))
	claim.kind.Kind = engine.KindSandboxClaim
	template := sandboxWith("template")
	template.kind.Kind = engine.KindSandboxTemplate
	open := newHoles()
	open.set("team", []exposure.Finding{
		{Policy: "allow-all", Direction: "Egress", Peers: []string{"everything"}, Pods: []string{"p"}},
		{Policy: "allow-all", Direction: "Ingress", Peers: []string{"everything"}, Pods: []string{"p"}},
	})
	entries := append([]*entry{sandboxWith("one", found("a", engine.Deny)), claim, template}, open.entries("team")...)
	var names []string
	for _, r := range reportsOf(entries) {
		names = append(names, fmt.Sprintf("%s %d", r.name, len(r.groups)))
	}
	want := []string{"agent-sandbox-networkpolicies 2", "agent-sandbox-sandboxclaims 1", "agent-sandbox-sandboxes 1"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("reports and their results (-want +got):\n%s", diff)
	}
}
