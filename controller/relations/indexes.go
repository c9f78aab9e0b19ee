// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Names of the indexes that several controllers ask. Each costs something on every event of its
// kind, so that a cache has each once.
const (
	// ByNameHash finds Sandboxes, templates and pools by the contract's hash of their names.
	ByNameHash = "name.hash"
	// SandboxByClaim finds Sandboxes by the UID of the claim that controls them.
	SandboxByClaim = "claim.uid"
	// PoolByTemplate finds pools by the name of their template.
	PoolByTemplate = "pool.template"
	// ClaimByPool finds claims by the name of the pool that they ask.
	ClaimByPool = "claim.pool"
)

// OfSandboxes are the indexes that several controllers ask of Sandboxes alone.
func OfSandboxes() []Index {
	return []Index{{Name: ByNameHash, Object: &agentsv1beta1.Sandbox{}, Value: nameHash}}
}

// OfExtensions are those that they ask in a cluster that has templates, pools and claims.
func OfExtensions() []Index {
	return []Index{
		{Name: ByNameHash, Object: &extensionsv1beta1.SandboxTemplate{}, Value: nameHash},
		{Name: ByNameHash, Object: &extensionsv1beta1.SandboxWarmPool{}, Value: nameHash},
		{Name: SandboxByClaim, Object: &agentsv1beta1.Sandbox{}, Value: claimUID},
		{Name: PoolByTemplate, Object: &extensionsv1beta1.SandboxWarmPool{}, Value: TemplateOfPool},
		{Name: ClaimByPool, Object: &extensionsv1beta1.SandboxClaim{}, Value: PoolOfClaim},
	}
}

func nameHash(object client.Object) string { return keys.NameHash(object.GetName()) }

func claimUID(sandbox client.Object) string {
	if owner := Claim(sandbox); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// Index finds objects of a kind by a value; those whose value is empty are not in it.
type Index struct {
	// Name is under which it is asked.
	Name string
	// Object is of the kind.
	Object client.Object
	// Value is what an object is found by.
	Value func(client.Object) string
}

// Declare declares indexes of a cache. It must run before the cache starts.
func Declare(ctx context.Context, indexer client.FieldIndexer, indexes ...Index) error {
	for _, index := range indexes {
		err := indexer.IndexField(ctx, index.Object, index.Name, func(object client.Object) []string {
			if value := index.Value(object); value != "" {
				return []string{value}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("declare index %s: %w", index.Name, err)
		}
	}
	return nil
}
