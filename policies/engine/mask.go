// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// Mask hides parts of the decision log by the contract of OPA: data.system.log.mask is a set of paths, each
// text, which removes what is there, or an object with op (remove or upsert), path and value. Paths are JSON
// pointers below /input and /result.
type Mask struct {
	query rego.PreparedEvalQuery
}

// maskOperation is one member of the set.
type maskOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// NewMask compiles a module of package system.log with the rule mask. It may call what rules may.
func NewMask(ctx context.Context, file string, content []byte) (*Mask, error) {
	m := Module{Name: file, Content: content, Source: "mask"}
	parsed, err := parse(file, string(content))
	if err != nil {
		return nil, explain(m, err)
	}
	if path := strings.Join(packagePath(parsed), "."); path != "system.log" {
		return nil, fmt.Errorf("%s: package %s: a mask is of package system.log", file, path)
	}
	if !slices.ContainsFunc(parsed.Rules, func(r *ast.Rule) bool { return r.Head.Name == "mask" && r.Head.RuleKind() == ast.MultiValue }) {
		return nil, fmt.Errorf("%s: no rule mask; write: mask contains path if { ... }", file)
	}
	compiler := newCompiler()
	if compiler.Compile(map[string]*ast.Module{file: parsed}); compiler.Failed() {
		return nil, explain(m, compiler.Errors)
	}
	query, err := rego.New(
		rego.Compiler(compiler), rego.Query("data.system.log.mask"), rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &Mask{query: query}, nil
}

// apply returns the line with what the mask hides hidden, and what that was under erased and masked. If the mask
// fails, nothing of the input is shown.
func (m *Mask) apply(written line) ([]byte, error) {
	var event map[string]any
	data, err := json.Marshal(written)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, err
	}
	operations, err := m.operations(event)
	if err != nil {
		delete(event, "input")
		event["mask_error"] = err.Error()
		return json.Marshal(event)
	}
	var erased, masked []string
	for _, operation := range operations {
		if !change(event, operation) {
			continue
		}
		if operation.Op == "upsert" {
			masked = append(masked, operation.Path)
		} else {
			erased = append(erased, operation.Path)
		}
	}
	for name, paths := range map[string][]string{"erased": erased, "masked": masked} {
		if len(paths) > 0 {
			event[name] = paths
		}
	}
	return json.Marshal(event)
}

func (m *Mask) operations(event map[string]any) ([]maskOperation, error) {
	results, err := m.query.Eval(context.Background(), rego.EvalInput(event))
	if err != nil {
		return nil, fmt.Errorf("evaluate the mask: %w", err)
	}
	if len(results) == 0 {
		return nil, nil
	}
	members, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return nil, fmt.Errorf("the mask is %T, not a set", results[0].Expressions[0].Value)
	}
	var operations []maskOperation
	for _, member := range members {
		operation := maskOperation{Op: "remove"}
		if text, ok := member.(string); ok {
			operation.Path = text
		} else if err := decodeStrictly(member, &operation); err != nil {
			return nil, fmt.Errorf("the mask has %s%w", textOf(member), err)
		}
		below := strings.HasPrefix(operation.Path, "/input") || strings.HasPrefix(operation.Path, "/result")
		if !below || (operation.Op != "remove" && operation.Op != "upsert") {
			return nil, fmt.Errorf("the mask has %s; write a path below /input or /result, or op (remove or upsert), path and value", textOf(member))
		}
		operations = append(operations, operation)
	}
	return operations, nil
}

// change does the operation if its path leads somewhere.
func change(event map[string]any, operation maskOperation) bool {
	steps := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
	for i := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
	}
	var parent any = event
	for _, step := range steps[:len(steps)-1] {
		parent = child(parent, step)
	}
	last := steps[len(steps)-1]
	switch parent := parent.(type) {
	case map[string]any:
		if operation.Op == "upsert" {
			parent[last] = operation.Value
			return true
		}
		_, found := parent[last]
		delete(parent, last)
		return found
	case []any:
		index, err := strconv.Atoi(last)
		if err != nil || index < 0 || index >= len(parent) {
			return false
		}
		// The places of the others stay, so that later paths still hold.
		parent[index] = operation.Value
		return true
	}
	return false
}

func child(parent any, step string) any {
	switch parent := parent.(type) {
	case map[string]any:
		return parent[step]
	case []any:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(parent) {
			return parent[index]
		}
	}
	return nil
}
