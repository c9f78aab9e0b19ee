// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// listed gives the rules that need an entry one that the Sandbox of the benchmarks keeps to.
const listed = `
rules:
  registry-allowed: {parameters: {registries: [registry.example.com]}}
  storage-class: {parameters: {allowed: [""]}}
`

// A rule costs little, and a bit more for each finding, whoever wrote it and whatever it asks. What makes one dear is
// nearly always that it passes the input or the object to a function, which then has to be read as a whole:
// refer to the field itself, or to data.lib.
func TestNoRuleOfTheLibraryIsDear(t *testing.T) {
	const most, mostOfFinding = 320, 150
	in := threeContainers(t)
	alone := engine.CostsAlone(t, loaded(t, listed, ruleFile("empty", "deny contains \"\" if false\n")), func(kind string) engine.Input {
		return ofKind(in, kind)
	})
	for _, id := range slices.Sorted(maps.Keys(alone)) {
		budget := most + mostOfFinding*alone[id].Findings
		if more := alone[id].Allocations - alone["empty"].Allocations; more > float64(budget) {
			t.Errorf("rule %s costs %.0f allocations more than one that does nothing, want at most %d", id, more, budget)
		}
	}
}

// What the test above calls dear is found by it.
func TestARuleThatReadsTheWholeObjectIsDear(t *testing.T) {
	body := "import data.lib.values\n\ndeny contains \"\" if values.string_at(input.object, [\"spec\", \"shutdownTime\"]) == \"never\"\n"
	in := threeContainers(t)
	alone := engine.CostsAlone(t, loaded(t, "", ruleFile("empty", "deny contains \"\" if false\n"), ruleFile("whole", body)), func(kind string) engine.Input {
		return ofKind(in, kind)
	})
	if more := alone["whole"].Allocations - alone["empty"].Allocations; more < 400 {
		t.Errorf("it costs %.0f allocations more than a rule that does nothing, which the limit for rules would pass", more)
	}
}
