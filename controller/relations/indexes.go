// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
