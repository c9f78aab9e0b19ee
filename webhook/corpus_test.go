// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// chartValues are those of the chart for an environment, of the chart or of the corpus.
func chartValues(tb testing.TB, environment string) (platform string, policies map[string]string) {
	tb.Helper()
	values := map[string]any{}
	chart := filepath.Join("..", "charts", "agent-sandbox")
	files := []string{filepath.Join(chart, "values.yaml")}
	if environment != "" {
		own := filepath.Join("..", "e2e", "corpus", "values-"+environment+".yaml")
		if _, err := os.Stat(own); err != nil {
			own = filepath.Join(chart, "values-"+environment+".yaml")
		}
		files = append(files, own)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var layer map[string]any
		if err := yaml.Unmarshal(text, &layer); err != nil {
			tb.Fatal(err)
		}
		overlay(values, layer)
	}
	platformValues := objectAt(values, "platform")
	objectAt(platformValues, "router")["namespace"] = "agent-sandbox-system"
	return asYAML(tb, platformValues), map[string]string{policysource.ConfigurationKey: asYAML(tb, map[string]any{"rules": objectAt(values, "policies")["rules"]})}
}

// overlay puts one layer of values over another, as Helm does.
func overlay(values, layer map[string]any) {
	for key, value := range layer {
		below, isObject := values[key].(map[string]any)
		above, also := value.(map[string]any)
		if isObject && also {
			overlay(below, above)
			continue
		}
		values[key] = value
	}
}

func asYAML(tb testing.TB, value any) string {
	tb.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// corpusWorld is the cluster before any case, with the values of an environment.
func corpusWorld(tb testing.TB, environment string) *Judge {
	tb.Helper()
	objects, err := corpus.World(os.DirFS(filepath.Join("..", "e2e", "corpus")), true)
	if err != nil {
		tb.Fatal(err)
	}
	w := world{}
	w.platform, w.policies = chartValues(tb, environment)
	for name, labels := range corpus.Namespaces {
		if name != "labelled" { // the world of the tests has it
			w.objects = append(w.objects, namespace(name, labels))
		}
		for _, object := range objects {
			if object["kind"] == "RuntimeClass" {
				continue // likewise
			}
			copied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
			copied.SetNamespace(name)
			w.objects = append(w.objects, copied)
		}
	}
	w.objects = append(w.objects, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "runc"}, Handler: "runc"})
	return w.judge(tb)
}

// submit sends a document through mutation and then to the judge. It is an update
// when there is an old one.
func submit(t *testing.T, judge *Judge, c corpus.Case, object, old map[string]any) (verdict, map[string]any) {
	t.Helper()
	operation := operationCreate
	if old != nil {
		operation = operationUpdate
	}
	request := admissionv1.AdmissionRequest{
		Operation: admissionv1.Operation(operation), Namespace: c.Namespace, UserInfo: userInfo("jane"),
		Kind: metav1.GroupVersionKind{Kind: textAt(object, "kind")}, Object: runtime.RawExtension{Raw: asJSONText(t, object)},
	}
	if old != nil {
		request.OldObject.Raw = asJSONText(t, old)
	}
	if c.User == "controller" {
		request.UserInfo = userInfo(controllerUser)
	}
	wrapped := admission.Request{AdmissionRequest: request}
	wrapped.Object.Raw = patched(t, wrapped.Object.Raw, judge.Mutate(t.Context(), wrapped))
	r, err := read(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	if r.leaving() || r.harmless() {
		return verdict{}, r.object
	}
	v, err := judge.judge(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v, r.object
}

func asJSONText(t *testing.T, object map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Every manifest of the corpus gets the verdict that it states, from mutation,
// validation and policies alone. The same manifests go to an installed webhook.
func TestCorpus(t *testing.T) {
	cases, err := corpus.Cases(os.DirFS(filepath.Join("..", "e2e", "corpus")))
	if err != nil {
		t.Fatal(err)
	}
	judges := map[string]*Judge{}
	for _, c := range cases {
		if judges[c.Values] == nil {
			judges[c.Values] = corpusWorld(t, c.Values)
		}
	}
	t.Logf("%d manifests, values of %q", len(cases), slices.Sorted(maps.Keys(judges)))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var v verdict
			var stored map[string]any
			for i, document := range c.Documents {
				if document.Stored {
					stored = document.Object
					continue
				}
				v, stored = submit(t, judges[c.Values], c, document.Object, stored)
				if denials := v.with(engine.Deny); i < len(c.Documents)-1 && len(denials) > 0 {
					t.Fatalf("step %d is refused: %s", i+1, message(denials))
				}
			}
			askTheEngine(t, judges[c.Values], c, stored)
			compareFindings(t, c.Denials, v.with(engine.Deny), true)
			compareFindings(t, c.Warnings, v.with(engine.Warn), false)
		})
	}
}

// An apiserver stores the world of the corpus in every namespace.
func TestTheWorldOfTheCorpusIsAdmitted(t *testing.T) {
	objects, err := corpus.World(os.DirFS(filepath.Join("..", "e2e", "corpus")), false)
	if err != nil {
		t.Fatal(err)
	}
	decide := corpusWorld(t, "")
	for name := range corpus.Namespaces {
		for _, object := range objects {
			if name == "unknown" || object["kind"] == "RuntimeClass" {
				continue // no one may label a namespace so; the other is none of our kinds
			}
			v, _ := submit(t, decide, corpus.Case{Namespace: name}, runtime.DeepCopyJSON(asDecoded(t, object)), nil)
			if denials := v.with(engine.Deny); len(denials) > 0 {
				t.Errorf("%s %s in namespace %s: %s", object["kind"], textAt(object, "metadata", "name"), name, message(denials))
			}
		}
	}
}

// compareFindings wants every finding that is stated and, if they are all, no other.
func compareFindings(t *testing.T, want []corpus.Finding, got []engine.Finding, all bool) {
	t.Helper()
	rest := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(rest, func(f engine.Finding) bool { return w.Is(f.Rule, f.Field) })
		if i < 0 {
			t.Errorf("no finding %s %s among: %s", w.Rule, w.Field, message(got))
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if all && len(rest) > 0 {
		t.Errorf("not stated: %s", message(rest))
	}
}
