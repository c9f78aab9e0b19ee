// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Inventory serves what exists in the cluster to rules that declare it, from the
// caches of the controllers.
type Inventory struct {
	// Reader is the client of the manager.
	Reader client.Reader
}

var _ engine.Inventory = Inventory{}

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
	default:
		return nil, fmt.Errorf("there is no data called %q", data)
	}
}

func (i Inventory) namespaces(ctx context.Context) (map[string]any, error) {
	var list corev1.NamespaceList
	if err := i.Reader.List(ctx, &list, lookup.Shared); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	found := make(map[string]any, len(list.Items))
	for n := range list.Items {
		found[list.Items[n].Name] = map[string]any{"labels": texts(list.Items[n].Labels), "annotations": texts(list.Items[n].Annotations)}
	}
	return found, nil
}

func (i Inventory) runtimeClasses(ctx context.Context) (map[string]any, error) {
	var list nodev1.RuntimeClassList
	if err := i.Reader.List(ctx, &list, lookup.Shared); err != nil {
		return nil, fmt.Errorf("list RuntimeClasses: %w", err)
	}
	found := make(map[string]any, len(list.Items))
	for n := range list.Items {
		found[list.Items[n].Name] = map[string]any{"handler": list.Items[n].Handler}
	}
	return found, nil
}

func (i Inventory) objects(ctx context.Context, kind, namespace string) (map[string]any, error) {
	listed, err := cached{i.Reader}.list(ctx, kind, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	found := make(map[string]any, len(listed))
	for _, object := range listed {
		if found[object.GetName()], err = document(object); err != nil {
			return nil, err
		}
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
