// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const small = `{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
	"metadata": {"name": "small", "namespace": "tenant", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"c": "d"},
		"managedFields": [{"manager": "kubectl"}]},
	"spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 80}], "cpu": 0.5}]}}},
	"status": {"sandboxes": 3}}`

// unstructuredOf is an object as an informer decodes it.
func unstructuredOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &object
}

// stored is an object after it went through the informers' transform, twice, as it may.
func stored(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	var kept any = object
	for range 2 {
		var err error
		if kept, err = trim(kept); err != nil {
			t.Fatal(err)
		}
	}
	result, ok := kept.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("the informers hold a %T", kept)
	}
	return result
}

func TestWhatIsPackedReadsAsItWas(t *testing.T) {
	want := unstructuredOf(t, small)
	want.SetManagedFields(nil)
	delete(want.Object, "status")
	kept := stored(t, unstructuredOf(t, small))
	if kept.GetUID() != "u" || kept.GetResourceVersion() != "7" {
		t.Errorf("it is held as %s at %s, want as it was", kept.GetUID(), kept.GetResourceVersion())
	}
	cached := fake.NewClientBuilder().WithObjects(kept).Build()
	readers := map[string]func() (map[string]any, error){
		"a reference": func() (map[string]any, error) {
			return Lookup{Cached: cached}.Template(t.Context(), "tenant", "small")
		},
		"the data of a rule": func() (map[string]any, error) {
			list, err := Inventory{Cached: cached}.List(t.Context(), engine.DataTemplates, "tenant")
			object, _ := list["small"].(map[string]any)
			return object, err
		},
		"from the apiserver": func() (map[string]any, error) {
			return Lookup{Cached: fake.NewClientBuilder().Build(), Live: fake.NewClientBuilder().WithObjects(want.DeepCopy()).Build()}.
				Template(t.Context(), "tenant", "small")
		},
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			got, err := read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, got); diff != "" {
				t.Errorf("the object (-want +got):\n%s", diff)
			}
		})
	}
}

// Templates of many small parts, each within every limit, must not fill the memory of a replica.
func TestTheInformersHoldLittleMoreThanTheTextOfTemplates(t *testing.T) {
	const templates, most = 50, 3
	ports := strings.Repeat(`{"containerPort": 80},`, 1000)
	container := `{"name": "c%d", "ports": [` + strings.TrimSuffix(ports, ",") + `]}`
	var containers []string
	for n := range 9 {
		containers = append(containers, fmt.Sprintf(container, n))
	}
	text := strings.Replace(small, `{"name": "main", "ports": [{"containerPort": 80}], "cpu": 0.5}`, strings.Join(containers, ","), 1)
	if !json.Valid([]byte(text)) {
		t.Fatal("the template is no JSON")
	}
	before := heap()
	store := make([]client.Object, 0, templates)
	for range templates {
		store = append(store, stored(t, unstructuredOf(t, text)))
	}
	grown, size := heap()-before, uint64(templates*len(text))
	runtime.KeepAlive(store)
	t.Logf("%d templates of %d bytes are held in %d", templates, len(text), grown)
	if grown > most*size {
		t.Errorf("%d bytes of templates are held in %d, want %d times as much at most", size, grown, most)
	}
}

// One request must not fill the memory by what its namespace has.
func TestARuleIsNotGivenMoreOfANamespaceThanFits(t *testing.T) {
	long := strings.Replace(small, `"b"`, `"`+strings.Repeat("b", maxServed/3)+`"`, 1)
	for count, fits := range map[int]bool{2: true, 3: false} {
		var objects []client.Object
		for n := range count {
			object := stored(t, unstructuredOf(t, long))
			object.SetName(fmt.Sprintf("long-%d", n))
			objects = append(objects, object)
		}
		cached := fake.NewClientBuilder().WithObjects(objects...).Build()
		if list, err := (Inventory{Cached: cached}).List(t.Context(), engine.DataTemplates, "tenant"); (err == nil) != fits || fits && len(list) != count {
			t.Errorf("of %d templates %d are listed, %v, want that they fit %t", count, len(list), err, fits)
		}
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
