// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// askTheEngine gives the last state of a manifest to the engine alone, as the command does,
// with the Pod that it borrows: of what the case states, it has to find what its own rules
// are about, and refuse nothing where they are not meant. What was there before an update
// is the webhook's to compare.
func askTheEngine(t *testing.T, decide *Judge, c corpus.Case, object map[string]any) {
	t.Helper()
	decision := decide.Engine.Evaluate(t.Context(), asTheCommand(t, decide, c, object))
	older := slices.ContainsFunc(c.Documents, func(d corpus.Document) bool { return d.Stored })
	expected := ofTheEngine(decide.Engine, c.Denials)
	for _, want := range expected {
		found := slices.ContainsFunc(decision.Findings, func(f engine.Finding) bool { return f.Enforcement == engine.Deny && want.Is(f.Rule, f.Field) })
		if !found {
			t.Errorf("the engine alone finds no %s %s", want.Rule, want.Field)
		}
	}
	for _, f := range decision.Findings {
		// The API's own rules may have spoken of the field, or of what is in it.
		stated := slices.ContainsFunc(c.Denials, func(want corpus.Finding) bool {
			return corpus.Finding{Rule: f.Rule, Field: want.Field}.Is(f.Rule, f.Field) ||
				strings.HasPrefix(want.Field, f.Field+".") || strings.HasPrefix(want.Field, f.Field+"[")
		})
		if !older && f.Enforcement == engine.Deny && !stated {
			t.Errorf("the engine alone refuses for %s", text(f))
		}
	}
}

// asTheCommand is what the engine is asked about an object, with the Pod that it borrows.
func asTheCommand(t *testing.T, decide *Judge, c corpus.Case, object map[string]any) engine.Input {
	t.Helper()
	known, err := decide.Facts(t.Context(), c.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	var tier map[string]any
	if raw, err := json.Marshal(known.Tier); err != nil || json.Unmarshal(raw, &tier) != nil {
		t.Fatalf("the tier is no JSON: %v", err)
	}
	r := review{kind: textAt(object, "kind"), namespace: c.Namespace, object: object}
	input := engine.Input{
		Operation: operationCreate, Kind: r.kind, Object: object, Namespace: known.Namespace,
		Tier: tier, TierName: known.TierName, Environment: known.Platform.Environment, Source: engine.SourceCLI, Now: decide.Clock.Now(),
	}
	if len(c.Documents) > 1 {
		input.Operation, input.OldObject = operationUpdate, c.Documents[len(c.Documents)-2].Object
	}
	pod := effective.OfOwn(object)
	switch r.kind {
	case engine.KindSandboxWarmPool:
		input.Template = borrowed(t, decide, r)
		pod = effective.OfPool(input.Template)
	case engine.KindSandboxClaim:
		input.Pool, input.Template = poolOf(t, decide, r), borrowed(t, decide, r)
		pod = effective.OfClaim(object, input.Template)
	}
	if pod.Pod != nil && known.TierKnown {
		defaults.Harden(pod.Pod, known.Tier, known.Classes.Usable, known.Classes.Free)
	}
	input.Pod, input.PodPath = pod.Pod, pod.Path
	return input
}

// ofTheEngine are the findings that its own rules are about, not those that it is told of.
func ofTheEngine(rules *engine.Engine, denials []corpus.Finding) []corpus.Finding {
	own := map[string]bool{}
	for _, rule := range rules.Catalogue() {
		own[rule.ID] = !engine.IsNative(rule.ID)
	}
	return slices.DeleteFunc(slices.Clone(denials), func(want corpus.Finding) bool {
		return !slices.ContainsFunc(strings.Split(want.Rule, "|"), func(rule string) bool { return own[rule] })
	})
}
