// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// ignored is an entry of ignoreDifferences.
type ignored struct {
	group, kind string
	expressions []string
}

// ignoreDifferences are the expressions that take away what admission sets: each field,
// and then the objects around it that have nothing else in them.
func ignoreDifferences(t *testing.T) []ignored {
	t.Helper()
	list := []ignored{
		{group: "agents.x-k8s.io", kind: "Sandbox"},
		{group: "extensions.agents.x-k8s.io", kind: "SandboxTemplate"},
		{group: "extensions.agents.x-k8s.io", kind: "SandboxClaim"},
	}
	every := everySet(t)
	for i := range list {
		fields, around := map[string]bool{}, map[string]bool{}
		for _, at := range expressionsOf(every[list[i].kind]) {
			fields[at.owner+strings.Join(at.members, "")] = true
			for end := at.kept; end < len(at.members); end++ {
				around[at.owner+strings.Join(at.members[:end], "")] = true
			}
		}
		list[i].expressions = slices.Sorted(maps.Keys(fields))
		for _, parent := range slices.SortedFunc(maps.Keys(around), deepestFirst) {
			list[i].expressions = append(list[i].expressions, parent+" | select(. == {} or . == null)")
		}
	}
	return list
}

func deepestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(b, "."), strings.Count(a, ".")), cmp.Compare(a, b))
}

// expression is a field as a path of jq.
type expression struct {
	// owner is the object, or several, that the members lead on from.
	owner   string
	members []string
	// kept is how many of the members are there whatever admission does.
	kept int
}

// expressionsOf are the fields of a set. Those of several lists of containers are one.
func expressionsOf(fields set) []expression {
	var list []expression
	ofContainers := map[string][]string{}
	for name := range fields {
		if key, is := strings.CutPrefix(name, "metadata.annotations["); is {
			list = append(list, expression{"", []string{".metadata", ".annotations", `["` + strings.TrimSuffix(key, "]") + `"]`}, 2})
			continue
		}
		below := strings.TrimPrefix(name, "spec.podTemplate.spec.")
		if owner, rest, inList := strings.Cut(below, "[*]."); inList {
			ofContainers[rest] = append(ofContainers[rest], "."+owner)
			continue
		}
		list = append(list, expression{".spec.podTemplate.spec", membersOf(below), 1})
	}
	for rest, owners := range ofContainers {
		slices.Sort(owners)
		list = append(list, expression{".spec.podTemplate.spec | (" + strings.Join(owners, ", ") + ")[]?", membersOf(rest), 1})
	}
	return list
}

func membersOf(path string) []string {
	members := strings.Split(path, ".")
	for i, member := range members {
		if strings.Contains(member, "-") {
			member = `"` + member + `"`
		}
		members[i] = "." + member
	}
	return members
}

// The snippet for Argo CD is made of what admission sets.
func TestReadmeTellsArgoCDWhatToIgnore(t *testing.T) {
	var text strings.Builder
	text.WriteString("```yaml\nspec:\n  ignoreDifferences:\n")
	for _, entry := range ignoreDifferences(t) {
		fmt.Fprintf(&text, "    - group: %s\n      kind: %s\n      jqPathExpressions:\n", entry.group, entry.kind)
		for _, expression := range entry.expressions {
			fmt.Fprintf(&text, "        - '%s'\n", expression)
		}
	}
	requireInReadme(t, "argocd", text.String()+"```\n")
}

// With the snippet, what admission makes of an object is to Argo CD what Git has: on every
// manifest of the corpus, in every tier. Argo CD deletes what the expressions say, one
// after the other, from both, and compares. No expression is idle.
func TestArgoCDSeesNoDifference(t *testing.T) {
	cases, err := corpus.Cases(os.DirFS("../e2e/corpus"))
	if err != nil {
		t.Fatal(err)
	}
	tiers := map[string]config.Tier{"restricted": platform(t, render(t, install{})).Tiers["restricted"], "every default": everyDefault()}
	codes, used := compiled(t), map[string]bool{}
	compared := 0
	for _, c := range cases {
		kind, _ := c.Last()["kind"].(string)
		for name, tier := range tiers {
			desired := decoded(t, asText(t, c.Last()))
			live := mutate(t, kind, c.Last(), tier)
			if reflect.DeepEqual(live, desired) {
				continue
			}
			compared++
			for _, code := range codes[kind] {
				left := code.delete(t, live)
				used[code.expression] = used[code.expression] || !reflect.DeepEqual(left, live)
				live, desired = left, code.delete(t, desired)
			}
			if diff := gocmp.Diff(desired, live); diff != "" {
				t.Errorf("%s in tier %s (-Git +live):\n%s", c.Name, name, diff)
			}
		}
	}
	if compared < 200 {
		t.Errorf("%d objects were compared, which proves little", compared)
	}
	for expression, needed := range used {
		if !needed {
			t.Errorf("nothing needs %s", expression)
		}
	}
}

// deletion is an expression, compiled as Argo CD does.
type deletion struct {
	expression string
	code       *gojq.Code
}

func compiled(t *testing.T) map[string][]deletion {
	t.Helper()
	all := map[string][]deletion{}
	for _, entry := range ignoreDifferences(t) {
		for _, expression := range entry.expressions {
			query, err := gojq.Parse("del(" + expression + ")")
			if err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			code, err := gojq.Compile(query)
			if err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			all[entry.kind] = append(all[entry.kind], deletion{expression, code})
		}
	}
	return all
}

func (d deletion) delete(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	result, _ := d.code.Run(object).Next()
	if err, failed := result.(error); failed {
		t.Fatalf("%s: %v", d.expression, err)
	}
	left, _ := result.(map[string]any)
	return left
}
