// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// mutated are rules whose fields admission sets before it judges, so that the manifest as
// it is written gets another verdict without the webhook.
var mutated = []string{"automount-token", "runtimeclass-required"}

// On the manifests of the corpus the backstop says what the rules say.
func TestTheBackstopJudgesTheCorpus(t *testing.T) {
	policies := backstop(t, render(t, install{set: []string{"backstop.rules=Always"}}))
	cases, err := corpus.Cases(os.DirFS("../e2e/corpus"))
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{
		"Sandbox": "sandboxes.v1beta1.agents.x-k8s.io", "SandboxTemplate": "sandboxtemplates.v1beta1.extensions.agents.x-k8s.io",
	}
	compared := func(id string) bool { return slices.Contains(backedUp, id) && !slices.Contains(mutated, id) }
	refused := 0
	for _, c := range cases {
		kind, _ := c.Last()["kind"].(string)
		if len(c.Documents) != 1 || c.Offline != "" || c.Values != "" || resources[kind] == "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			data, err := json.Marshal(c.Last())
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, finding := range c.Denials {
				if compared(finding.Rule) {
					want = append(want, finding.Rule)
				}
			}
			slices.Sort(want)
			for _, id := range rulesOfRefusals(refusals(t, policies, write{resource: resources[kind], object: string(data)})) {
				if compared(id) {
					got = append(got, id)
				}
			}
			refused += len(got)
			if diff := cmp.Diff(slices.Compact(want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: refused by (-rules +backstop):\n%s", c.Story, diff)
			}
		})
	}
	if refused == 0 {
		t.Error("the backstop refuses nothing of the corpus, so that nothing was compared")
	}
}
