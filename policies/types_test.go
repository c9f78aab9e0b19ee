// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// someParameters are entries of the lists that rules need to be on.
var someParameters = map[string]map[string]any{
	"direct-sandbox":       {"groups": []any{"platform"}},
	"egress-cluster":       {"clusterCIDRs": []any{"10.0.0.0/8"}},
	"id-ranges":            {"allowMergedGroups": false},
	"isolated-nodes":       {"nodeSelector": map[string]any{"pool": "sandboxes"}},
	"platform-owned":       {"groups": []any{"platform"}},
	"pool-allowed":         {"pools": []any{"shared"}},
	"registry-allowed":     {"registries": []any{"registry.example.com"}},
	"runtimeclass-allowed": {"allowed": []any{"kata"}},
	"storage-class":        {"allowed": []any{"standard"}},
	"verified-digest":      {"digests": map[string]any{"sha256:" + strings.Repeat("0", 64): "ann"}},
}

// shelf is what exists in the cluster.
type shelf struct{}

func (shelf) List(context.Context, engine.Data, string) (map[string]any, error) {
	return map[string]any{"kube-system": map[string]any{"labels": map[string]any{"a": "b"}}, "gvisor": map[string]any{"handler": "runsc"}}, nil
}

// everyRule is an engine with every rule of the library on.
func everyRule(t *testing.T) *engine.Engine {
	t.Helper()
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Configuration{Rules: map[string]engine.RuleConfig{}}
	for _, info := range catalogue(t) {
		if !info.Floor && !strings.HasPrefix(info.ID, "pss-") {
			cfg.Rules[info.ID] = engine.RuleConfig{Enforcement: engine.Warn, Parameters: someParameters[info.ID]}
		}
	}
	e, err := engine.New(engine.WithInventory(shelf{}))
	if err != nil {
		t.Fatal(err)
	}
	report, err := e.Load(t.Context(), modules, cfg)
	if err != nil || len(report.Broken) > 0 {
		t.Fatal(err, report.Broken)
	}
	return e
}

// places calls visit with a function for every value below root, which puts another in its place.
func places(value any, at string, visit func(at string, put func(any) any)) {
	switch parent := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(parent)) {
			visit(at+"."+key, func(other any) any { old := parent[key]; parent[key] = other; return old })
			places(parent[key], at+"."+key, visit)
		}
	case []any:
		for i := range parent {
			visit(fmt.Sprintf("%s[%d]", at, i), func(other any) any { old := parent[i]; parent[i] = other; return old })
			places(parent[i], fmt.Sprintf("%s[%d]", at, i), visit)
		}
	}
}

// sampleOfValues says that one value of so many is put into a place, in turn, unless -mutants asks for all.
const sampleOfValues = 3

// TestNoValueOfTheWrongTypeMakesARuleFail puts values of every type into every place of an object that is new or was in
// order before. A rule has an answer to each: its failure would be a finding, but one that tells the user nothing.
func TestNoValueOfTheWrongTypeMakesARuleFail(t *testing.T) {
	content, err := os.ReadFile("testdata/faulty.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	e := everyRule(t)
	kinds := []string{engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxWarmPool, engine.KindSandboxClaim}
	values := []any{nil, int64(7), "x", true, []any{}, []any{nil}, []any{"x"}, map[string]any{}, map[string]any{"x": nil}}
	before, _ := runtime.DeepCopyJSONValue(object).(map[string]any)
	judged, found := 0, map[string]bool{}
	judge := func(at string, value any, in engine.Input) {
		for _, f := range e.Evaluate(t.Context(), in).Findings {
			found[f.Rule] = true
			// Pod Security cannot read such a Pod and says so; a list of annotations is none of a claim or Pod.
			if f.Failure && !strings.HasPrefix(f.Rule, "pss-") && !strings.HasSuffix(at, "annotations") {
				t.Errorf("%s: %s fails where %s is %v: %s", in.Operation, f.Rule, at, value, f.Message)
			}
		}
	}
	places(object, "", func(at string, put func(any) any) {
		for i, value := range values {
			if !*allMutants && (judged+i)%sampleOfValues != 0 {
				continue
			}
			old := put(runtime.DeepCopyJSONValue(value))
			spec, _ := object["spec"].(map[string]any)
			pod, _ := spec["podTemplate"].(map[string]any)
			in := engine.Input{
				Operation: "UPDATE", Kind: kinds[(judged+i)%len(kinds)], Object: object, OldObject: before, Pod: pod,
				Namespace: engine.NamespaceInfo{Name: "team"}, User: engine.UserInfo{Username: "ann"},
			}
			judge(at, value, in)
			in.Operation, in.OldObject = "CREATE", nil
			judge(at, value, in)
			put(old)
		}
		judged++
	})
	if judged < 200 || len(found) < 60 {
		t.Errorf("%d places were tried and %d rules found something: too few to prove much", judged, len(found))
	}
	t.Logf("%d places, %d rules with a finding", judged, len(found))
}
