// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// maxServed is how many bytes of JSON the templates or the pools of a namespace may have that are
// decoded for a rule: whoever writes them could fill the memory by one request.
const maxServed = 4 << 20

// Inventory serves what exists in the cluster to rules that declare it, from informers.
type Inventory struct {
	Cached client.Reader
}

// List returns what exists by name.
func (i Inventory) List(ctx context.Context, data engine.Data, namespace string) (map[string]any, error) {
	switch data {
	case engine.DataNamespaces:
		return i.namespaces(ctx)
	case engine.DataRuntimeClasses:
		return i.runtimeClasses(ctx)
	case engine.DataTemplates:
		return i.objects(ctx, engine.KindSandboxTemplate, namespace)
	case engine.DataPools:
		return i.objects(ctx, engine.KindSandboxWarmPool, namespace)
	}
	return nil, fmt.Errorf("there is no data called %q", data)
}

func (i Inventory) namespaces(ctx context.Context) (map[string]any, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := i.Cached.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	found := make(map[string]any, len(list.Items))
	for n := range list.Items {
		found[list.Items[n].Name] = map[string]any{
			"labels": texts(list.Items[n].Labels), "annotations": texts(list.Items[n].Annotations),
		}
	}
	return found, nil
}

func (i Inventory) runtimeClasses(ctx context.Context) (map[string]any, error) {
	var list nodev1.RuntimeClassList
	if err := i.Cached.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list RuntimeClasses: %w", err)
	}
	found := make(map[string]any, len(list.Items))
	for n := range list.Items {
		found[list.Items[n].Name] = map[string]any{"handler": list.Items[n].Handler}
	}
	return found, nil
}

func (i Inventory) objects(ctx context.Context, kind, namespace string) (map[string]any, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(kind + "List"))
	if err := i.Cached.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list %s of namespace %q: %w", kind, namespace, err)
	}
	size := 0
	for n := range list.Items {
		size += sizeOf(&list.Items[n])
	}
	if size > maxServed {
		return nil, fmt.Errorf("list %s of namespace %q: they are %d bytes, more than %d", kind, namespace, size, maxServed)
	}
	found := make(map[string]any, len(list.Items))
	for n := range list.Items {
		object, err := unpacked(&list.Items[n])
		if err != nil {
			return nil, err
		}
		found[list.Items[n].GetName()] = object
	}
	return found, nil
}

// texts is the mapping as decoded JSON.
func texts(values map[string]string) map[string]any {
	converted := make(map[string]any, len(values))
	for key, value := range values {
		converted[key] = value
	}
	return converted
}
