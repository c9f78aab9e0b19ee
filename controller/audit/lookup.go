// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// cached reads what judgements rest on from the caches of the controllers, and never
// from the apiserver.
type cached struct {
	reader client.Reader
}

var _ judge.Lookup = cached{}

// Namespace returns a namespace.
func (c cached) Namespace(ctx context.Context, name string) (engine.NamespaceInfo, error) {
	var namespace corev1.Namespace
	if err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return engine.NamespaceInfo{}, fmt.Errorf("read namespace %q: %w", name, err)
	}
	return engine.NamespaceInfo{Name: name, Labels: namespace.Labels, Annotations: namespace.Annotations}, nil
}

// RuntimeClasses are those that exist, and those of them under which a Pod can start. Which
// nodes take Pods at this moment does not matter for what is stored.
func (c cached) RuntimeClasses(ctx context.Context) (judge.RuntimeClasses, error) {
	var list nodev1.RuntimeClassList
	if err := c.reader.List(ctx, &list, lookup.Shared); err != nil {
		return judge.RuntimeClasses{}, fmt.Errorf("list RuntimeClasses: %w", err)
	}
	return judge.RuntimeClassesOf(list.Items, func(labels map[string]string, _ bool) (bool, error) {
		var nodes corev1.NodeList
		if err := c.reader.List(ctx, &nodes, client.MatchingLabels(labels), client.Limit(1), lookup.Shared); err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		return len(nodes.Items) > 0, nil
	})
}

// Template returns a SandboxTemplate, nil if there is none that stays.
func (c cached) Template(ctx context.Context, namespace, name string) (map[string]any, error) {
	template, err := c.template(ctx, namespace, name)
	if err != nil || template == nil {
		return nil, err
	}
	return document(template)
}

// Pool returns a SandboxWarmPool, nil if there is none that stays.
func (c cached) Pool(ctx context.Context, namespace, name string) (map[string]any, error) {
	pool, err := c.pool(ctx, namespace, name)
	if err != nil || pool == nil {
		return nil, err
	}
	return document(pool)
}

func (c cached) template(ctx context.Context, namespace, name string) (*extensionsv1beta1.SandboxTemplate, error) {
	return lookup.Staying(ctx, c.reader, namespace, name, &extensionsv1beta1.SandboxTemplate{})
}

func (c cached) pool(ctx context.Context, namespace, name string) (*extensionsv1beta1.SandboxWarmPool, error) {
	return lookup.Staying(ctx, c.reader, namespace, name, &extensionsv1beta1.SandboxWarmPool{})
}

// Colliding returns the name of another object of the kind whose name has the same
// hash, empty if there is none.
func (c cached) Colliding(ctx context.Context, kind, namespace, name string) (string, error) {
	if kind == engine.KindSandboxClaim {
		return "", nil // its hash selects nothing
	}
	listed, err := c.list(ctx, kind, client.InNamespace(namespace), client.MatchingFields{relations.ByNameHash: keys.NameHash(name)})
	if err != nil {
		return "", err
	}
	for _, object := range listed {
		if object.GetName() != name {
			return object.GetName(), nil
		}
	}
	return "", nil
}

// list returns the objects of a kind. They belong to the cache.
func (c cached) list(ctx context.Context, kind string, opts ...client.ListOption) ([]client.Object, error) {
	opts = append(opts, lookup.Shared)
	switch kind {
	case engine.KindSandbox:
		var list agentsv1beta1.SandboxList
		err := c.reader.List(ctx, &list, opts...)
		return objects(kind, list.Items, err)
	case engine.KindSandboxTemplate:
		var list extensionsv1beta1.SandboxTemplateList
		err := c.reader.List(ctx, &list, opts...)
		return objects(kind, list.Items, err)
	case engine.KindSandboxWarmPool:
		var list extensionsv1beta1.SandboxWarmPoolList
		err := c.reader.List(ctx, &list, opts...)
		return objects(kind, list.Items, err)
	case engine.KindSandboxClaim:
		var list extensionsv1beta1.SandboxClaimList
		err := c.reader.List(ctx, &list, opts...)
		return objects(kind, list.Items, err)
	default:
		return nil, fmt.Errorf("list %s: it is no kind of the platform", kind)
	}
}

func objects[T any, P interface {
	*T
	client.Object
}](kind string, items []T, err error) ([]client.Object, error) {
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	listed := make([]client.Object, len(items))
	for i := range items {
		listed[i] = P(&items[i])
	}
	return listed, nil
}

// referred adds to the fingerprint what an object refers to.
func (c cached) referred(ctx context.Context, f *fingerprint, object client.Object) error {
	var pool *extensionsv1beta1.SandboxWarmPool
	switch object := object.(type) {
	case *extensionsv1beta1.SandboxClaim:
		var err error
		if pool, err = c.pool(ctx, object.Namespace, object.Spec.WarmPoolRef.Name); err != nil {
			return err
		}
		if pool == nil {
			f.object(nil)
			return nil
		}
		f.object(pool)
	case *extensionsv1beta1.SandboxWarmPool:
		pool = object
	default:
		return nil
	}
	template, err := c.template(ctx, pool.Namespace, pool.Spec.TemplateRef.Name)
	if err != nil {
		return err
	}
	if template == nil {
		f.object(nil)
		return nil
	}
	f.object(template)
	return nil
}
