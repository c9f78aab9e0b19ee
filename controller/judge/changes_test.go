// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"os"
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

// try holds a judge to what the change says.
func (c change) try(t *testing.T, j *Judge) {
	t.Helper()
	was := c.object(c.Was, c.Metadata)
	if brought, tolerated := c.ratchet(t, j, was, was); brought > 0 || (tolerated == 0) != (c.Silent != "") {
		t.Errorf("%d findings are brought in and %d tolerated where nothing changes", brought, tolerated)
	}
	for i, spec := range c.Worse {
		if brought, _ := c.ratchet(t, j, was, c.object(spec, c.Metadata)); brought == 0 {
			t.Errorf("worse %d is not brought in", i)
		}
	}
	for i, metadata := range c.WorseMetadata {
		if brought, _ := c.ratchet(t, j, was, c.object(c.Was, metadata)); brought == 0 {
			t.Errorf("worse metadata %d is not brought in", i)
		}
	}
	for i, spec := range c.NoWorse {
		if brought, tolerated := c.ratchet(t, j, was, c.object(spec, c.Metadata)); brought > 0 || tolerated == 0 {
			t.Errorf("of no worse %d, %d findings are brought in and %d tolerated", i, brought, tolerated)
		}
	}
}

// everything is a judge with every rule on, in a tier that has ceilings.
func everything(t *testing.T, parameters map[string]map[string]any) *Judge {
	t.Helper()
	j := judgeOf(library(t), "open")
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]engine.RuleConfig{}
	for _, info := range j.Engine.Catalogue() {
		if !info.Floor && !engine.IsNative(info.ID) && !strings.HasPrefix(info.ID, "pss-") {
			rules[info.ID] = engine.RuleConfig{Enforcement: engine.Deny, Parameters: parameters[info.ID]}
		}
	}
	if j.Engine, err = engine.New(engine.WithInventory(nothing{})); err != nil {
		t.Fatal(err)
	}
	if report, err := j.Engine.Load(t.Context(), modules, engine.Configuration{Rules: rules}); err != nil || len(report.Broken) > 0 {
		t.Fatal(err, report.Broken)
	}
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

// nothing is a cluster without anything that rules look up.
type nothing struct{}

func (nothing) List(context.Context, engine.Data, string) (map[string]any, error) {
	return map[string]any{}, nil
}

// An update brings in what is worse than before, and may leave, lessen and mend what was wrong.
func TestNothingWorseIsExcusedByWhatWasWrongBefore(t *testing.T) {
	content, err := os.ReadFile("testdata/changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all changes
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	j := everything(t, all.Parameters)
	tried := sets.KeySet(all.Single)
	for i, c := range all.Changes {
		tried.Insert(c.Rule)
		t.Run(fmt.Sprintf("%d %s", i, c.Rule), func(t *testing.T) { c.try(t, j) })
	}
	for _, info := range j.Engine.Catalogue() {
		if !tried.Has(info.ID) && !engine.IsNative(info.ID) {
			t.Errorf("no change is tried under the rule %s", info.ID)
		}
	}
}
