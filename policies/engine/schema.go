// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/crds"
)

// schemas types the input of rules: JSON schemas of our kinds as the apiserver stores them. It stores no null
// where the schema has a type, so comparing with null is a mismatch too.
type schemas struct {
	kinds map[string]any
	pod   any
}

var loadSchemas = sync.OnceValues(func() (*schemas, error) {
	s := &schemas{kinds: map[string]any{}}
	entries, err := crds.Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the schemas of our kinds: %w", err)
	}
	for _, entry := range entries {
		data, err := crds.Files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read the schemas of our kinds: %w", err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("read the schema in %s: %w", entry.Name(), err)
		}
		kind, _ := objectAt(objectAt(crd, "spec"), "names")["kind"].(string)
		versions := listAt(objectAt(crd, "spec"), "versions")
		if len(versions) != 1 {
			return nil, fmt.Errorf("read the schema in %s: %d versions, want one", entry.Name(), len(versions))
		}
		schema := objectAt(objectAt(versions[0], "schema"), "openAPIV3Schema")
		if kind == KindSandbox {
			s.pod = typed(objectAt(objectAt(objectAt(objectAt(schema, "properties"), "spec"), "properties"), "podTemplate"))
		}
		s.kinds[kind] = typed(schema)
	}
	return s, nil
})

// typed keeps of a structural schema what types are made of.
func typed(schema map[string]any) any {
	kind, _ := schema["type"].(string)
	if schema["x-kubernetes-int-or-string"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true || schema["nullable"] == true || kind == "" {
		return map[string]any{}
	}
	plain := map[string]any{"type": kind}
	switch kind {
	case "object":
		if properties := objectAt(schema, "properties"); len(properties) > 0 {
			plain["properties"] = typedAll(properties)
		} else {
			plain["additionalProperties"] = typed(objectAt(schema, "additionalProperties"))
		}
	case "array":
		plain["items"] = typed(objectAt(schema, "items"))
	}
	return plain
}

func typedAll(properties map[string]any) map[string]any {
	all := map[string]any{}
	for name := range properties {
		all[name] = typed(objectAt(properties, name))
	}
	return all
}

// ofRule returns the schema of the input of a rule for some kinds.
func (s *schemas) ofRule(ruleKinds []string) map[string]any {
	reference := func(name string) any { return map[string]any{"$ref": "#/definitions/" + name} }
	text := map[string]any{"type": "string"}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	object := func(properties map[string]any) any { return map[string]any{"type": "object", "properties": properties} }
	anything := map[string]any{}
	properties := map[string]any{
		"operation": text, "kind": text, "source": text, "now": text, "pod_path": text, "tier_name": text,
		"user":      object(map[string]any{"username": text, "uid": text, "groups": map[string]any{"type": "array", "items": text}}),
		"namespace": object(map[string]any{"name": text, "labels": texts, "annotations": texts}),
		"pod":       reference("pod"), "tier": anything, "environment": anything, "parameters": anything,
	}
	for _, name := range factNames {
		properties[name] = anything
	}
	definitions := map[string]any{"pod": s.pod}
	var judged any
	for _, kind := range ruleKinds {
		judged = union(judged, s.kinds[kind])
	}
	properties["object"] = judged
	properties["old_object"] = properties["object"]
	if slices.Contains(ruleKinds, KindSandboxWarmPool) || slices.Contains(ruleKinds, KindSandboxClaim) {
		definitions[KindSandboxTemplate], definitions[KindSandboxWarmPool] = s.kinds[KindSandboxTemplate], s.kinds[KindSandboxWarmPool]
		properties["template"], properties["pool"] = reference(KindSandboxTemplate), reference(KindSandboxWarmPool)
	}
	return map[string]any{"type": "object", "properties": properties, "definitions": definitions}
}

// union returns a schema with the properties of both, since the checker does not look into unions of its own.
func union(a, b any) any {
	one, _ := a.(map[string]any)
	other, _ := b.(map[string]any)
	switch {
	case a == nil:
		return b
	case reflect.DeepEqual(a, b):
		return a
	case objectAt(one, "properties") == nil || objectAt(other, "properties") == nil:
		return map[string]any{}
	}
	merged := maps.Clone(objectAt(one, "properties"))
	for name, schema := range objectAt(other, "properties") {
		merged[name] = union(merged[name], schema)
	}
	return map[string]any{"type": "object", "properties": merged}
}

// schemaSet returns the schema in the form that the compiler takes.
func schemaSet(ruleKinds []string) (*ast.SchemaSet, error) {
	all, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, all.ofRule(ruleKinds))
	return set, nil
}

// schemaOf is the schema of what is written of a Go type, of structs by the names in their tags; a map is anything.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case t.Kind() == reflect.Struct:
		properties := map[string]any{}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			properties[name] = schemaOf(field.Type)
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	if scalar, ok := scalars[t.Kind()]; ok {
		return map[string]any{"type": scalar}
	}
	return map[string]any{}
}

var scalars = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "number", reflect.Float64: "number",
}

// typeHint says what the type checker's message is about.
func (m Module) typeHint(message string) string {
	switch {
	case strings.HasPrefix(message, "undefined ref: input") && m.Source == sourceMask:
		return "; a line of the decision log has no such field"
	case strings.HasPrefix(message, "undefined ref: input"):
		return "; the input has no such field for the kinds of this rule"
	case strings.HasPrefix(message, "match error"):
		return "; the schema of our kinds gives the two different types, so they are never equal"
	}
	return ""
}
