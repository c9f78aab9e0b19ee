// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestInventory(t *testing.T) {
	named := func(kind, namespace, name string) *unstructured.Unstructured {
		object := extensionObject(kind)
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	labelled := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: labels}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: labelled("team", map[string]string{"stage": "prod"})},
		&nodev1.RuntimeClass{ObjectMeta: labelled("gvisor", nil), Handler: "runsc"},
		named(engine.KindSandboxTemplate, "team", "small"), named(engine.KindSandboxTemplate, "other", "large"),
		named(engine.KindSandboxWarmPool, "team", "pool"),
	}
	inventory := Inventory{Cached: fake.NewClientBuilder().WithObjects(objects...).Build()}
	cases := map[engine.Data]map[string]any{
		engine.DataNamespaces:     {"team": map[string]any{"labels": map[string]any{"stage": "prod"}, "annotations": map[string]any{}}},
		engine.DataRuntimeClasses: {"gvisor": map[string]any{"handler": "runsc"}},
		engine.DataTemplates:      {"small": "SandboxTemplate"},
		engine.DataPools:          {"pool": "SandboxWarmPool"},
	}
	for data, want := range cases {
		t.Run(string(data), func(t *testing.T) {
			got, err := inventory.List(t.Context(), data, "team")
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range got {
				if object, ok := value.(map[string]any); ok && object["kind"] != nil {
					got[name] = object["kind"]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := inventory.List(t.Context(), "secrets", "team"); err == nil {
		t.Error("there are secrets")
	}
}
