// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// defined returns the member of a list, and errs when it has none.
var defined = &ast.Builtin{Name: "internal.defined", Decl: types.NewFunction(types.Args(types.NewArray(nil, types.A)), types.A)}

func returnDefined(call topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
	if found, ok := operands[0].Value.(*ast.Array); ok && found.Len() > 0 {
		return iter(found.Elem(0))
	}
	return &topdown.Error{
		Code: topdown.BuiltinErr, Location: call.Location,
		Message: "the conditions hold, but something in the finding is undefined; build it from what is certainly defined",
	}
}

// keepUndefined makes an error of a finding that is undefined although the conditions hold: a rule that only wants to
// tell the name of what it found would allow what has none. "deny contains {"name": input.name} if bad" becomes
// "deny contains x if { bad; x := defined([{"name": input.name} | true]) }", with the assignments that only build the
// finding among it. What iterates is a condition, and so is what a variable, a function or another rule alone gives.
// Entries are the sets of the module whose members are meant.
func keepUndefined(parsed *ast.Module, entries ...string) {
	named := ast.ReservedVars.Copy()
	for _, r := range parsed.Rules {
		named.Add(r.Head.Ref()[0].Value.(ast.Var))
	}
	for _, imported := range parsed.Imports {
		named.Add(imported.Name())
	}
	for _, r := range parsed.Rules {
		if name := r.Head.Ref()[0].Value.(ast.Var); r.Head.Key != nil && slices.Contains(entries, string(name)) {
			keepUndefinedOf(r, named)
		}
	}
}

const findingVar = ast.Var("__finding__")

func keepUndefinedOf(r *ast.Rule, named ast.VarSet) {
	conditions, building := split(r.Body, named)
	key := r.Head.Key
	if !mayBeUndefined(key, len(building) > 0) || iterates(key, named, conditions, building) {
		return
	}
	if len(building) == 0 {
		building = ast.NewBody(ast.NewExpr(ast.BooleanTerm(true).SetLocation(key.Location)))
	}
	finding := ast.NewTerm(findingVar).SetLocation(key.Location)
	found := ast.ArrayComprehensionTerm(key, building).SetLocation(key.Location)
	given := defined.Call(found).SetLocation(key.Location)
	conditions = append(conditions, ast.Assign.Expr(finding, given).SetLocation(key.Location))
	r.Head.Key, r.Body = finding, ast.NewBody(conditions...)
}

// mayBeUndefined says so of what a head gives. What a variable stands for, or a function of the rule gives, is a
// condition unless it is only built for the finding.
func mayBeUndefined(key *ast.Term, built bool) bool {
	switch value := key.Value.(type) {
	case ast.Var:
		return built
	case ast.Call:
		return built || ast.BuiltinMap[value[0].Value.String()] != nil
	case *ast.TemplateString:
		return false
	default:
		return !ast.IsConstant(key.Value)
	}
}

// split takes the expressions of a body apart: its conditions, and what only builds the finding.
func split(body ast.Body, named ast.VarSet) (conditions, building ast.Body) {
	builds := make([]bool, len(body))
	for i, expr := range body {
		builds[i] = buildsText(expr)
	}
	for again := true; again; {
		again = false
		conditions, building = nil, nil
		for i, expr := range body {
			if builds[i] {
				building = append(building, expr)
			} else {
				conditions = append(conditions, expr)
			}
		}
		needed := ast.NewVarVisitor()
		needed.Walk(conditions)
		for i, expr := range body {
			if builds[i] && (needed.Vars().Contains(expr.Operand(0).Value.(ast.Var)) || iterates(expr.Operand(1), named, conditions, building)) {
				builds[i], again = false, true
			}
		}
	}
	return conditions, building
}

// buildsText says whether the expression assigns a text, or a collection of what is known.
func buildsText(expr *ast.Expr) bool {
	if !expr.IsAssignment() || expr.Negated || len(expr.With) > 0 {
		return false
	}
	if _, isVar := expr.Operand(0).Value.(ast.Var); !isVar {
		return false
	}
	switch value := expr.Operand(1).Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return !ast.IsConstant(value)
	case ast.Call:
		name := value[0].Value.String()
		return name == ast.Sprintf.Name || name == ast.Concat.Name
	default:
		return false
	}
}

// iterates says whether the term has variables that only itself gives a value to.
func iterates(term *ast.Term, named ast.VarSet, conditions, building ast.Body) bool {
	known := named.Copy()
	known.Update(given(conditions))
	for _, expr := range building {
		known.Update(read(expr.Operand(0)))
	}
	return read(term).DiffCount(known) > 0
}

// given are the variables that conditions give a value to: not those that they only declare, negate or compare.
func given(conditions ast.Body) ast.VarSet {
	known := ast.NewVarSet()
	for _, expr := range conditions {
		if expr.Negated {
			continue
		}
		if declared, ok := expr.Terms.(*ast.SomeDecl); ok {
			if in, ok := declared.Symbols[0].Value.(ast.Call); ok {
				known.Update(read(in))
			}
			continue
		}
		if expr.IsAssignment() || expr.IsEquality() {
			known.Update(read(expr.Operand(0)))
		}
		if expr.IsEquality() {
			known.Update(read(expr.Operand(1)))
		}
		asked(expr, known)
	}
	return known
}

// asked adds the variables that references are asked by: each gets its values from what is there.
func asked(expr *ast.Expr, known ast.VarSet) {
	visitor := ast.NewGenericVisitor(func(node any) bool {
		switch node := node.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every:
			return true
		case ast.Ref:
			for _, by := range node[1:] {
				known.Update(read(by))
			}
		}
		return false
	})
	visitor.Walk(expr)
}

// read are the variables of a node, without those of comprehensions.
func read(node any) ast.VarSet {
	visitor := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true, SkipRefCallHead: true})
	visitor.Walk(node)
	return visitor.Vars()
}
