// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// sourceMask is the source of a mask, and entryMask its set.
const (
	sourceMask = "mask"
	entryMask  = "mask"
)

// Mask hides parts of the decision log by the contract of OPA: data.system.log.mask is a set of paths, each
// text, which removes what is there, or an object with op (remove or upsert), path and value. Paths are JSON
// pointers below /input and /result.
type Mask struct {
	query rego.PreparedEvalQuery
	// late counts how often in a row it did not finish in time.
	late atomic.Int32
}

// maskOperation is one member of the set.
type maskOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// NewMask compiles a module of package system.log with the rule mask. It may call what rules may, and what it reads of a
// line is held to what a line has.
func NewMask(ctx context.Context, file string, content []byte) (*Mask, error) {
	m := Module{Name: file, Content: content, Source: sourceMask}
	parsed, err := parseBounded(m)
	if err != nil {
		return nil, err
	}
	if path := strings.Join(packagePath(parsed), "."); path != "system.log" {
		return nil, fmt.Errorf("%s: package %s: a mask is of package system.log", file, path)
	}
	if !slices.ContainsFunc(parsed.Rules, func(r *ast.Rule) bool { return r.Head.Name == entryMask && r.Head.RuleKind() == ast.MultiValue }) {
		return nil, fmt.Errorf("%s: no rule mask; write: mask contains path if { ... }", file)
	}
	keepErrors(parsed)
	keepUndefined(parsed, entryMask)
	types := ast.NewSchemaSet()
	types.Put(ast.SchemaRootRef, schemaOf(reflect.TypeFor[line]()))
	compiler := newCompiler(file).WithSchemas(types)
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

// Limits of a mask. It has a time of its own, since no request waits for it.
const (
	maskBudget = 500 * time.Millisecond
	maskGrace  = 100 * time.Millisecond
)

// apply returns the line with what the mask hides hidden, and what that was under erased and masked. An error says
// nothing of what the line has.
func (m *Mask) apply(written line) ([]byte, error) {
	if m.late.Load() >= quarantineAfter {
		return nil, fmt.Errorf("it did not finish in time %d times in a row and is not run any more until the next start", quarantineAfter)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maskBudget)
	defer cancel()
	masked, err := attempt(ctx, maskGrace, func(a *account) maskedLine {
		data, err := m.hide(written, a)
		return maskedLine{data, err}
	})
	if errors.Is(err, errTimeout) {
		m.late.Add(1)
		return nil, err
	}
	m.late.Store(0)
	if err != nil {
		return nil, errPanic
	}
	return masked.data, masked.err
}

type maskedLine struct {
	data []byte
	err  error
}

func (m *Mask) hide(written line, a *account) ([]byte, error) {
	var event map[string]any
	data, err := json.Marshal(written)
	if err != nil {
		return nil, errNoLine
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, errNoLine
	}
	operations, err := m.operations(event, a)
	if err != nil {
		return nil, err
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

// Errors of a mask tell no values: those are what it would have hidden.
var (
	errNoLine    = errors.New("the decision cannot be written")
	errNoSet     = errors.New("the mask is not a set")
	errOperation = errors.New("the mask has something else than paths below /input or /result and objects with op (remove or upsert), path and value")
)

func (m *Mask) operations(event map[string]any, a *account) ([]maskOperation, error) {
	results, err := m.query.Eval(context.Background(), rego.EvalInput(event), rego.EvalExternalCancel(a))
	if err != nil {
		return nil, withoutValues(err)
	}
	// A set is always defined: without a result, nobody knows what it would hide.
	if len(results) != 1 {
		return nil, errNoSet
	}
	members, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return nil, errNoSet
	}
	var operations []maskOperation
	for _, member := range members {
		operation := maskOperation{Op: "remove"}
		if text, ok := member.(string); ok {
			operation.Path = text
		} else if decodeStrictly(member, &operation) != nil {
			return nil, errOperation
		}
		below := strings.HasPrefix(operation.Path, "/input") || strings.HasPrefix(operation.Path, "/result")
		if !below || (operation.Op != "remove" && operation.Op != "upsert") {
			return nil, errOperation
		}
		operations = append(operations, operation)
	}
	return operations, nil
}

// withoutValues says where the mask failed, and how.
func withoutValues(err error) error {
	var failed *topdown.Error
	if errors.As(err, &failed) && failed.Location != nil {
		return fmt.Errorf("%s at %s:%d", failed.Code, failed.Location.File, failed.Location.Row)
	}
	return errors.New("the mask cannot be evaluated")
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
