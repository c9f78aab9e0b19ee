// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// shortcuts are the helpers that hand on a fact, "name := input.fact if is_object(input.fact) else := ...", by
// their paths. Here the input always has it, so that references to them may as well be references to it: a
// document of its own in between costs as much as a small rule.
type shortcuts map[string]ast.Ref

func findShortcuts(helpers map[string]*ast.Module) shortcuts {
	found := shortcuts{}
	for _, helper := range helpers {
		for _, r := range helper.Rules {
			if fact, ok := handedOn(r); ok {
				found[helper.Package.Path.Append(ast.StringTerm(r.Head.Ref().String())).String()] = fact
			}
		}
	}
	return found
}

// handedOn is the fact that the rule hands on.
func handedOn(r *ast.Rule) (ast.Ref, bool) {
	if r.Else == nil || r.Head.Value == nil || len(r.Head.Args) > 0 || len(r.Body) != 1 || !r.Body[0].IsCall() {
		return nil, false
	}
	fact, ok := r.Head.Value.Value.(ast.Ref)
	if !ok || len(fact) != 2 || !fact.HasPrefix(ast.InputRootRef) || !slices.Contains(factNames, string(fact[1].Value.(ast.String))) {
		return nil, false
	}
	asked := r.Body[0]
	name := asked.Operator().String()
	return fact, (name == ast.IsObject.Name || name == ast.IsSet.Name) && asked.Operand(0).Equal(r.Head.Value)
}

// take returns the rule, whose references are written out, with the shortcuts taken.
func (s shortcuts) take(r *ast.Rule) (*ast.Rule, error) {
	changed, err := ast.TransformRefs(r, func(ref ast.Ref) (ast.Value, error) {
		if !isHelper(ref) || len(ref) < helperDepth {
			return ref, nil
		}
		if fact, ok := s[ref[:helperDepth].String()]; ok {
			return fact.Concat(ref[helperDepth:]), nil
		}
		return ref, nil
	})
	if err != nil {
		return nil, err
	}
	taken, ok := changed.(*ast.Rule)
	if !ok {
		return nil, fmt.Errorf("rule became %T", changed)
	}
	return taken, nil
}

// helperDepth is how long a reference to a helper is, data.lib.<package>.<name>.
const helperDepth = 4
