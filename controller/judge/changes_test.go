// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// changes is what testdata/changes.yaml says.
type changes struct {
	Parameters map[string]map[string]any `json:"parameters"`
	Changes    []change                  `json:"changes"`
	Single     map[string]string         `json:"single"`
}

type change struct {
	Rule          string           `json:"rule"`
	Kind          string           `json:"kind"`
	Was           map[string]any   `json:"was"`
	Worse         []map[string]any `json:"worse"`
	NoWorse       []map[string]any `json:"noWorse"`
	Metadata      map[string]any   `json:"metadata"`
	WorseMetadata []map[string]any `json:"worseMetadata"`
	// Silent says why the object as it was has no finding.
	Silent string `json:"silent"`
}

// object is the object with that spec, and metadata of its Pod.
func (c change) object(spec, metadata map[string]any) map[string]any {
	kind := c.Kind
	if spec == nil {
		spec = map[string]any{}
	}
	if kind == "" {
		kind = engine.KindSandbox
		spec = map[string]any{"podTemplate": map[string]any{"metadata": metadata, "spec": spec}}
	}
	return map[string]any{"kind": kind, "metadata": map[string]any{"name": "s", "namespace": "team"}, "spec": spec}
}

// ratchet returns how many findings of the rule an update brings in, and how many it does not.
func (c change) ratchet(t *testing.T, j *Judge, was, now map[string]any) (brought, tolerated int) {
	t.Helper()
	facts, err := j.Facts(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	update := Question{
		Operation: OperationUpdate, Kind: now["kind"].(string), Namespace: "team", Name: "s",
		Object: now, Old: was, User: engine.UserInfo{Username: "ann"},
	}
	// What admission adds to the old object it has added to the new one as well.
	mirrored := update
	mirrored.Object, mirrored.Old = was, now
	update.Object = mirrored.Before(facts).Object
	judged := func(q Question) Judgement {
		judgement, err := j.Submitted(t.Context(), q, facts)
		if err != nil {
			t.Fatal(err)
		}
		return judgement
	}
	count := func(findings []engine.Finding) (n int) {
		for _, f := range findings {
			if f.Failure {
				t.Errorf("%s fails: %s", f.Rule, f.Message)
			}
			if f.Rule == c.Rule {
				n++
			}
		}
		return n
	}
	in, before := Ratchet(judged(update), judged(update.Before(facts)), ChangesSpec)
	return count(in), count(before)
}

// faults are what a judge does otherwise than the change says.
func (c change) faults(t *testing.T, j *Judge) (faults []string) {
	t.Helper()
	was := c.object(c.Was, c.Metadata)
	if brought, tolerated := c.ratchet(t, j, was, was); brought > 0 || (tolerated == 0) != (c.Silent != "") {
		faults = append(faults, fmt.Sprintf("%d findings are brought in and %d tolerated where nothing changes", brought, tolerated))
	}
	for i, spec := range c.Worse {
		if brought, _ := c.ratchet(t, j, was, c.object(spec, c.Metadata)); brought == 0 {
			faults = append(faults, fmt.Sprintf("worse %d is not brought in", i))
		}
	}
	for i, metadata := range c.WorseMetadata {
		if brought, _ := c.ratchet(t, j, was, c.object(c.Was, metadata)); brought == 0 {
			faults = append(faults, fmt.Sprintf("worse metadata %d is not brought in", i))
		}
	}
	for i, spec := range c.NoWorse {
		if brought, tolerated := c.ratchet(t, j, was, c.object(spec, c.Metadata)); brought > 0 || tolerated == 0 {
			faults = append(faults, fmt.Sprintf("of no worse %d, %d findings are brought in and %d tolerated", i, brought, tolerated))
		}
	}
	return faults
}

// everyRule is the configuration of every rule that can be configured.
func everyRule(catalogue []engine.RuleInfo, parameters map[string]map[string]any) engine.Configuration {
	rules := map[string]engine.RuleConfig{}
	for _, info := range catalogue {
		if !info.Floor && !engine.IsNative(info.ID) && !strings.HasPrefix(info.ID, "pss-") {
			rules[info.ID] = engine.RuleConfig{Enforcement: engine.Deny, Parameters: parameters[info.ID]}
		}
	}
	return engine.Configuration{Rules: rules}
}

// everything is a judge with every rule on, in a tier that has ceilings.
func everything(t *testing.T, parameters map[string]map[string]any) *Judge {
	t.Helper()
	j := judgeOf(library(t), "open")
	configuration := everyRule(j.Engine.Catalogue(), parameters)
	var err error
	if j.Engine, err = engine.New(engine.WithInventory(classes{"a": "runc", "b": "runc"})); err != nil {
		t.Fatal(err)
	}
	load(t, j.Engine, modules(t), configuration)
	tier := config.Tier{
		Creates: []string{engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxWarmPool, engine.KindSandboxClaim},
		Egress:  config.TierEgress{Profile: "none"}, ServiceAccounts: []string{"agent"}, PodSecurity: config.PodSecurity{Deny: "restricted", Version: "latest"}, Hardening: config.Hardening{Token: config.Require},
		Resources: config.Resources{Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
	}
	platform := &config.Platform{DefaultTier: "open", Tiers: map[string]config.Tier{"open": tier}}
	j.Current = func() *config.Platform { return platform }
	j.Clock = testclock.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	return j
}

// classes are the RuntimeClasses of a cluster by their handlers; it has nothing else that rules look up.
type classes map[string]string

func (c classes) List(_ context.Context, data engine.Data, _ string) (map[string]any, error) {
	known := map[string]any{}
	if data == engine.DataRuntimeClasses {
		for name, handler := range c {
			known[name] = map[string]any{"handler": handler}
		}
	}
	return known, nil
}

func modules(t *testing.T) []engine.Module {
	t.Helper()
	all, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func load(t *testing.T, rules *engine.Engine, modules []engine.Module, configuration engine.Configuration) {
	t.Helper()
	if report, err := rules.Load(t.Context(), modules, configuration); err != nil || len(report.Broken) > 0 {
		t.Fatal(err, report.Broken)
	}
}

func readChanges(t *testing.T) changes {
	t.Helper()
	content, err := os.ReadFile("testdata/changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all changes
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// An update brings in what is worse than before, and may leave, lessen and mend what was wrong.
func TestNothingWorseIsExcusedByWhatWasWrongBefore(t *testing.T) {
	all := readChanges(t)
	j := everything(t, all.Parameters)
	tried := sets.KeySet(all.Single)
	for i, c := range all.Changes {
		tried.Insert(c.Rule)
		t.Run(fmt.Sprintf("%d %s", i, c.Rule), func(t *testing.T) {
			for _, fault := range c.faults(t, j) {
				t.Error(fault)
			}
		})
	}
	for _, info := range j.Engine.Catalogue() {
		if !tried.Has(info.ID) && !engine.IsNative(info.ID) {
			t.Errorf("no change is tried under the rule %s", info.ID)
		}
	}
}

// compared is a line that says what a finding is about, or how much of it there is.
var compared = regexp.MustCompile(`(?m)^\t+"(?:content|amount)": .*,\n`)

// Without what a finding is about, some change is judged otherwise: there is nothing that nobody needs.
func TestEverythingThatUpdatesAreComparedByIsNeeded(t *testing.T) {
	all := readChanges(t)
	j := everything(t, all.Parameters)
	configuration := everyRule(j.Engine.Catalogue(), all.Parameters)
	library, left := modules(t), 0
	for i, module := range library {
		rule, _, _ := strings.Cut(path.Base(module.Name), ".")
		for _, line := range compared.FindAllIndex(module.Content, -1) {
			left++
			changed := slices.Clone(library)
			changed[i].Content = slices.Concat(module.Content[:line[0]], module.Content[line[1]:])
			if report, err := j.Engine.Load(t.Context(), changed, configuration); err != nil || len(report.Broken) > 0 {
				continue // It does not even compile: what only the line uses is not used.
			}
			noticed := slices.ContainsFunc(all.Changes, func(c change) bool { return c.Rule == rule && len(c.faults(t, j)) > 0 })
			if !noticed {
				t.Errorf("%s: no change is judged otherwise without %s", module.Name, strings.TrimSpace(string(module.Content[line[0]:line[1]])))
			}
		}
	}
	if left < 50 {
		t.Errorf("%d lines were left out: too few to prove much", left)
	}
}
