// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// The names of fields are the same in every request, so each is made once for all of them. OPA allows
// that before anything else runs only.
func init() {
	names := map[string]bool{}
	for _, kind := range []any{
		agentsv1beta1.Sandbox{}, extensionsv1beta1.SandboxTemplate{}, extensionsv1beta1.SandboxWarmPool{},
		extensionsv1beta1.SandboxClaim{},
	} {
		addFieldNames(reflect.TypeOf(kind), names, map[reflect.Type]bool{})
	}
	for _, name := range slices.Concat(inputNames, factNames) {
		names[name] = true
	}
	for name := range names {
		ast.InternStringTerm(name)
	}
}

// inputNames are those of the input and of what Go reads beforehand, and common values.
var inputNames = []string{
	"operation", "kind", "source", "now", "pod_path", "tier_name", "user", "username", "uid", "groups", "namespace",
	"name", "labels", "annotations", "resources", "pod", "object", "old_object",
	"template", "pool", "tier", "environment", "parameters", "milli", "bytes", "error", "registry", "repository", "tag",
	"digest", "limits", "requests", "cpu", "memory", "ephemeral-storage", "storage", "ALL", "NET_RAW", "RuntimeDefault",
	"TCP", "UDP", "ReadWriteOnce", "CREATE", "UPDATE", SourceAdmission, SourceAudit, SourceCLI, KindSandbox,
	KindSandboxTemplate, KindSandboxWarmPool, KindSandboxClaim,
}

// addFieldNames collects the JSON names of the fields of a type and of those within.
func addFieldNames(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		addFieldNames(t.Elem(), names, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] {
		return
	}
	seen[t] = true
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
		addFieldNames(field.Type, names, seen)
	}
}

// converter makes values of Rego from decoded JSON, for what most rules look at. It allocates in blocks.
type converter struct {
	terms []ast.Term
	// pairs is a stack of the members of the objects that are being made.
	pairs [][2]*ast.Term
}

const termBlock = 64

func (c *converter) term(value ast.Value) *ast.Term {
	if len(c.terms) == 0 {
		c.terms = make([]ast.Term, termBlock)
	}
	term := &c.terms[0]
	c.terms = c.terms[1:]
	term.Value = value
	return term
}

func (c *converter) text(s string) *ast.Term {
	if ast.HasInternedValue(s) {
		return ast.InternedTerm(s)
	}
	return c.term(ast.String(s))
}

func (c *converter) convert(x any) (*ast.Term, error) {
	switch x := x.(type) {
	case *ast.Term:
		return x, nil
	case string:
		return c.text(x), nil
	case bool:
		return ast.InternedTerm(x), nil
	case map[string]any:
		return c.object(x)
	case map[string]string:
		return c.texts(x), nil
	case []any:
		return c.array(x)
	}
	value, err := ast.InterfaceToValue(x)
	if err != nil {
		return nil, err
	}
	return c.term(value), nil
}

func (c *converter) object(members map[string]any) (*ast.Term, error) {
	base := len(c.pairs)
	defer func() { c.pairs = c.pairs[:base] }()
	for key, member := range members {
		value, err := c.convert(member)
		if err != nil {
			return nil, err
		}
		c.pairs = append(c.pairs, [2]*ast.Term{c.text(key), value})
	}
	return c.term(ast.NewObject(c.pairs[base:]...)), nil
}

func (c *converter) texts(members map[string]string) *ast.Term {
	base := len(c.pairs)
	for key, member := range members {
		c.pairs = append(c.pairs, [2]*ast.Term{c.text(key), c.text(member)})
	}
	made := c.term(ast.NewObject(c.pairs[base:]...))
	c.pairs = c.pairs[:base]
	return made
}

func (c *converter) array(members []any) (*ast.Term, error) {
	elements := make([]*ast.Term, len(members))
	for i, member := range members {
		var err error
		if elements[i], err = c.convert(member); err != nil {
			return nil, err
		}
	}
	return c.term(ast.NewArray(elements...)), nil
}

// cache remembers what keys that come again and again stand for. It forgets everything when it is full.
type cache[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]V
	make    func(key K) V
}

const (
	cacheEntries = 4096
	// cacheText is how long a text may be that is remembered.
	cacheText = 512
)

func newCache[K comparable, V any](create func(K) V) *cache[K, V] {
	return &cache[K, V]{entries: map[K]V{}, make: create}
}

func (c *cache[K, V]) of(key K) V {
	c.mu.RLock()
	value, ok := c.entries[key]
	c.mu.RUnlock()
	if ok {
		return value
	}
	value = c.make(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheEntries {
		clear(c.entries)
	}
	c.entries[key] = value
	return value
}

// ofText is of, for a text that may be too long to remember.
func ofText[V any](c *cache[string, V], text string) V {
	if len(text) > cacheText {
		return c.make(text)
	}
	return c.of(text)
}
