// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// guards are the rules of metadata and owners that the backstop holds on our four kinds,
// as far as a case does not say otherwise.
var guards = []string{"reserved-metadata", "forged-owner"}

// heldCases are the cases of the corpus that the backstop can be asked about: those for the
// chart's own values, in a tier that there is. Without an apiserver, an object that none
// would store may still be the old state of another.
func heldCases(t *testing.T) []corpus.Case {
	t.Helper()
	cases, err := corpus.Cases(os.DirFS("../e2e/corpus"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(cases, func(c corpus.Case) bool {
		old := len(c.Documents) > 1 && c.Documents[0].Stored
		return kindResources[kindOf(c)] == "" || c.Values != "" || c.Offline != "" && !old || c.Namespace == "unknown"
	})
}

// kindResources are the resources of our kinds.
var kindResources = map[string]string{
	"Sandbox": kindResource, "SandboxTemplate": "sandboxtemplates.v1beta1.extensions.agents.x-k8s.io",
	"SandboxClaim": "sandboxclaims.v1beta1.extensions.agents.x-k8s.io", "SandboxWarmPool": "sandboxwarmpools.v1beta1.extensions.agents.x-k8s.io",
}

// releaseController is the controller of a release under the default name.
const releaseController = "system:serviceaccount:" + defaultNamespace + ":agent-sandbox-controller"

func kindOf(c corpus.Case) string {
	kind, _ := c.Last()["kind"].(string)
	return kind
}

// admitted is a state of an object with what admission sets of it that the rules are
// about; one that is older than all admission stays as it is.
func admitted(document corpus.Document) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document.Object)}
	if _, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "podTemplate"); err != nil || !found {
		return object
	}
	for name, value := range map[string]any{"automountServiceAccountToken": false, "runtimeClassName": "gvisor"} {
		path := []string{"spec", "podTemplate", "spec", name}
		set, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err == nil && !document.Stored && (set == nil || set == "") {
			_ = unstructured.SetNestedField(object.Object, value, path...) // the Pod is an object, or it could not be read
		}
	}
	return object
}

// stated are the fields that a case names for the rules which the backstop holds, by rule.
func stated(c corpus.Case) map[string][]string {
	fields := map[string][]string{}
	for _, finding := range c.Denials {
		if slices.Contains(backedUp, finding.Rule) || slices.Contains(guards, finding.Rule) && c.Unguarded == "" {
			fields[finding.Rule] = append(fields[finding.Rule], finding.Field)
		}
	}
	return fields
}

// compareRefusals wants a refusal for each rule that a case states, and no other, and in it
// each field that the case names, or what that is a member of.
func compareRefusals(t *testing.T, c corpus.Case, messages []string) {
	t.Helper()
	want, got := stated(c), map[string][]string{}
	for _, message := range messages {
		if id, rest, _ := strings.Cut(message, ":"); slices.Contains(backedUp, id) || slices.Contains(guards, id) {
			got[id] = append(got[id], refusedField.FindAllString(rest, -1)...)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: refused by (-stated +backstop):\n%s%s", c.Story, diff, strings.Join(messages, "\n"))
		return
	}
	for id := range want {
		covers := func(field string, by []string) bool {
			return slices.ContainsFunc(by, func(b string) bool { return strings.HasPrefix(field, b) || strings.HasPrefix(b, field) })
		}
		for _, field := range want[id] {
			if !covers(field, got[id]) {
				t.Errorf("%s: %s names %q, want %s among them", c.Story, id, got[id], field)
			}
		}
		for _, field := range got[id] {
			if !covers(field, want[id]) {
				t.Errorf("%s: %s names %s, which is not stated", c.Story, id, field)
			}
		}
	}
}

var refusedField = regexp.MustCompile(`spec\.podTemplate\.spec\.[^ ,:]+|metadata\.(?:labels|annotations)\[[^\]]+\]|metadata\.ownerReferences`)

// compared counts what was compared: each rule, and each guard by operation and kind.
type compared map[string]int

func (n compared) count(c corpus.Case) {
	operation := "CREATE"
	if len(c.Documents) > 1 {
		operation = "UPDATE"
	}
	for id := range stated(c) {
		n[id]++
		if slices.Contains(guards, id) {
			n[id+", "+operation+" of "+kindOf(c)]++
		}
	}
}

// mustHaveAll wants a refusal by every rule that the backstop holds, and by every guard on
// each kind.
func (n compared) mustHaveAll(t *testing.T, rules ...string) {
	t.Helper()
	for _, id := range guards {
		for kind := range kindResources {
			rules = append(rules, id+", CREATE of "+kind, id+", UPDATE of "+kind)
		}
	}
	for _, id := range rules {
		if n[id] == 0 {
			t.Errorf("no manifest breaks rule %s, so that nothing was compared", id)
		}
	}
}

// On the manifests of the corpus, and on the last of several states of one, the backstop
// says what the rules say.
func TestTheBackstopJudgesTheCorpus(t *testing.T) {
	policies := backstop(t, render(t, install{set: []string{"backstop.rules=Always"}}))
	refused, excused := compared{}, 0
	for _, c := range heldCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			asText := func(document corpus.Document) string {
				data, err := json.Marshal(admitted(document))
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			last := len(c.Documents) - 1
			w := write{resource: kindResources[kindOf(c)], object: asText(c.Documents[last]), tier: corpus.Namespaces[c.Namespace][keys.Tier]}
			if c.User == "controller" {
				w.user = releaseController
			}
			if last > 0 {
				w.old = asText(c.Documents[last-1])
			}
			compareRefusals(t, c, refusals(t, policies, w))
			refused.count(c)
			if w.old = ""; last > 0 && c.Allowed && len(refusals(t, policies, w)) > 0 {
				excused++
			}
		})
	}
	refused.mustHaveAll(t, backedUp...)
	if excused < len(backedUp) {
		t.Errorf("%d updates keep a fault that was there, want at least %d", excused, len(backedUp))
	}
}
