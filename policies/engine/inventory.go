// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// Data names what of the cluster a rule may declare in METADATA custom.data and then read as
// data.inventory.<name>.
type Data string

// What the inventory holds, each by name: namespaces as {labels, annotations}, RuntimeClasses as {handler},
// templates and pools of the object's namespace as they are.
const (
	DataNamespaces     Data = "namespaces"
	DataRuntimeClasses Data = "runtimeclasses"
	DataTemplates      Data = "templates"
	DataPools          Data = "pools"
)

var allData = []Data{DataNamespaces, DataRuntimeClasses, DataTemplates, DataPools}

// Inventory serves what exists in the cluster, from caches. It is asked at most once an evaluation for each
// data, and only if a rule reads it.
type Inventory interface {
	// List returns what exists by name, as JSON that nobody changes. An error, as before a cache is filled,
	// makes the rules that asked fail, each with its enforcement.
	List(ctx context.Context, data Data, namespace string) (map[string]any, error)
}

// WithInventory sets what rules can read of the cluster. Without one, those that do fail.
func WithInventory(inventory Inventory) Option {
	return func(e *Engine) { e.inventory = inventory }
}

var errNoInventory = errors.New("what exists in the cluster is not served here")

// stock is the inventory of one evaluation.
type stock struct {
	inventory Inventory
	namespace string

	mu     sync.Mutex
	listed map[Data]map[string]any
}

// read lists what was read.
func (s *stock) read() []Data {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.listed))
}

// at returns the document at the path below data.inventory.
func (s *stock) at(ctx context.Context, path storage.Path) (any, error) {
	if len(path) == 0 || !slices.Contains(allData, Data(path[0])) {
		return nil, notFound(path)
	}
	listed, err := s.list(ctx, Data(path[0]))
	if err != nil {
		return nil, fmt.Errorf("read data.%s.%s: %w", inventoryRoot, path[0], err)
	}
	var document any = listed
	for i, step := range path[1:] {
		next, ok := below(document, step)
		if !ok {
			return nil, notFound(path[:i+1])
		}
		document = next
	}
	return document, nil
}

// below is a member of an object or a list.
func below(document any, step string) (member any, ok bool) {
	if list, isList := document.([]any); isList {
		index, ok := indexIn(step, len(list))
		if !ok {
			return nil, false
		}
		return list[index], true
	}
	object, _ := document.(map[string]any)
	member, ok = object[step]
	return member, ok
}

func (s *stock) list(ctx context.Context, data Data) (map[string]any, error) {
	if s == nil || s.inventory == nil {
		return nil, errNoInventory
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if listed, ok := s.listed[data]; ok {
		return listed, nil
	}
	listed, err := s.inventory.List(ctx, data, s.namespace)
	if err != nil {
		return nil, err
	}
	if s.listed == nil {
		s.listed = map[Data]map[string]any{}
	}
	s.listed[data] = listed
	return listed, nil
}

var inventoryRef = ast.DefaultRootRef.Append(ast.StringTerm(inventoryRoot))

// servesData says whether the reference is to data that the rule declares.
func servesData(ref ast.Ref, info RuleInfo) bool {
	if !ref.HasPrefix(inventoryRef) || len(ref) <= len(inventoryRef) {
		return false
	}
	name, ok := ref[len(inventoryRef)].Value.(ast.String)
	return ok && slices.Contains(info.Data, Data(name))
}
