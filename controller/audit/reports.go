// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const (
	// reportSource is the name under which reports and their results are found.
	reportSource = "agent-sandbox"
	// maxResults is how many results a report lists, maxSubjects how many objects a
	// result names. A report of the longest texts is then half as long as etcd stores.
	maxResults  = 100
	maxSubjects = 20
	// ruleOmitted is the rule of the result that counts those that are not listed.
	ruleOmitted = "audit"
)

// shards are the reports of a namespace: one a kind, so that a busy kind does not
// rewrite the others'.
var shards = map[string]string{
	engine.KindSandbox: "sandboxes", engine.KindSandboxTemplate: "sandboxtemplates", engine.KindSandboxWarmPool: "sandboxwarmpools",
	engine.KindSandboxClaim: "sandboxclaims", kindNetworkPolicy.Kind: "networkpolicies",
}

// outcome is what a finding is called in a report.
func outcome(f engine.Finding) reportsv1alpha1.Result {
	switch {
	case f.Failure:
		return "error"
	case f.Exemption != "":
		return "skip"
	case f.Enforcement == engine.Deny:
		return "fail"
	default:
		return "warn"
	}
}

// outcomes are in the order of how much they matter.
var outcomes = []reportsv1alpha1.Result{"fail", "error", "warn", "skip"}

// group is one finding and the objects that have it.
type group struct {
	finding
	subjects []*entry
}

// report is the content of one report.
type report struct {
	name    string
	groups  []group
	summary reportsv1alpha1.ReportSummary
}

// reportsOf makes the reports of a namespace, those without a finding left out.
func reportsOf(entries []*entry) []report {
	byKind := map[string][]*entry{}
	for _, e := range entries {
		byKind[e.kind.Kind] = append(byKind[e.kind.Kind], e)
	}
	var reports []report
	for kind, of := range byKind {
		if r := reportOf(shards[kind], of); len(r.groups) > 0 {
			reports = append(reports, r)
		}
	}
	slices.SortFunc(reports, func(a, b report) int { return cmp.Compare(a.name, b.name) })
	return reports
}

func reportOf(shard string, entries []*entry) report {
	r := report{name: reportSource + "-" + shard}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid)) })
	found := map[finding]*group{}
	for _, e := range entries {
		r.count(e)
		for _, f := range e.findings {
			g := found[f]
			if g == nil {
				g = &group{finding: f}
				found[f] = g
			}
			if n := len(g.subjects); n == 0 || g.subjects[n-1] != e {
				g.subjects = append(g.subjects, e)
			}
		}
	}
	for _, g := range found {
		r.groups = append(r.groups, *g)
	}
	slices.SortFunc(r.groups, compareGroups)
	return r
}

// count adds an object by the worst that is to be said of it.
func (r *report) count(e *entry) {
	worst := len(outcomes)
	for _, f := range e.findings {
		worst = min(worst, slices.Index(outcomes, outcome(f.Value())))
	}
	if worst == len(outcomes) {
		r.summary.Pass++
		return
	}
	switch outcomes[worst] {
	case "fail":
		r.summary.Fail++
	case "error":
		r.summary.Error++
	case "warn":
		r.summary.Warn++
	case "skip":
		r.summary.Skip++
	}
}

var severityOrder = []engine.Severity{engine.Critical, engine.High, engine.Medium, engine.Low}

// compareGroups puts first what matters most.
func compareGroups(one, other group) int {
	a, b := one.Value(), other.Value()
	return cmp.Or(
		cmp.Compare(slices.Index(outcomes, outcome(a)), slices.Index(outcomes, outcome(b))),
		cmp.Compare(slices.Index(severityOrder, a.Severity), slices.Index(severityOrder, b.Severity)),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Value, b.Value),
		cmp.Compare(one.subjects[0].name, other.subjects[0].name),
	)
}

// results lists the findings, and counts those that find no room. Their times are the
// caller's to add.
func (r *report) results(namespace string, categories map[string]string) []reportsv1alpha1.ReportResult {
	groups := r.groups
	if len(groups) > maxResults {
		groups = groups[:maxResults-1]
	}
	results := make([]reportsv1alpha1.ReportResult, 0, len(groups)+1)
	for _, g := range groups {
		results = append(results, g.result(namespace, categories))
	}
	if rest := r.groups[len(groups):]; len(rest) > 0 {
		results = append(results, reportsv1alpha1.ReportResult{
			Source: reportSource, Policy: ruleOmitted, Severity: "info", Result: outcome(rest[0].Value()),
			Description: fmt.Sprintf("%d more results are not listed; the metric agent_sandbox_policy_violations counts all", len(rest)),
			Properties:  map[string]string{"omitted": strconv.Itoa(len(rest))},
		})
	}
	return results
}

func (g group) result(namespace string, categories map[string]string) reportsv1alpha1.ReportResult {
	f := g.Value()
	result := reportsv1alpha1.ReportResult{
		Source: reportSource, Policy: f.Rule, Category: clip.Part(categories[f.Rule]), Severity: reportsv1alpha1.ResultSeverity(f.Severity),
		Result: outcome(f), Scored: f.Enforcement == engine.Deny, Description: description(f),
		Properties: map[string]string{"enforcement": string(f.Enforcement), "objects": strconv.Itoa(len(g.subjects))},
	}
	for key, value := range map[string]string{"field": f.Field, "exemption": f.Exemption} {
		if value != "" {
			result.Properties[key] = value
		}
	}
	for _, e := range g.subjects[:min(len(g.subjects), maxSubjects)] {
		result.Subjects = append(result.Subjects, corev1.ObjectReference{
			APIVersion: e.kind.GroupVersion().String(), Kind: e.kind.Kind, Namespace: namespace, Name: e.name, UID: e.uid,
		})
	}
	return result
}

// description is a finding in words, without the value: that may be a secret.
func description(f engine.Finding) string {
	text := strings.TrimSuffix(f.Message, ".") + "."
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Remediation != "" {
		text += " Fix: " + f.Remediation
	}
	return text
}

// categoriesOf are the categories of the rules in force.
func categoriesOf(catalogue []engine.RuleInfo) map[string]string {
	categories := map[string]string{}
	for i := range catalogue {
		categories[catalogue[i].ID] = catalogue[i].Category
	}
	return categories
}

// kindReport is the kind of the reports.
var kindReport = schema.GroupVersionKind{Group: reportsv1alpha1.GroupName, Version: reportsv1alpha1.GroupVersion.Version, Kind: "Report"}
