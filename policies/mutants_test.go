// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// mutation is one change of a module.
type mutation struct {
	row   int
	what  string
	apply func()
}

// opposites are the comparisons and what each is changed to.
var opposites = map[string]*ast.Builtin{
	ast.Equal.Name: ast.NotEqual, ast.NotEqual.Name: ast.Equal,
	ast.LessThan.Name: ast.LessThanEq, ast.LessThanEq.Name: ast.LessThan,
	ast.GreaterThan.Name: ast.GreaterThanEq, ast.GreaterThanEq.Name: ast.GreaterThan,
}

// mutations lists the changes that can be made to a module, in a fixed order.
func mutations(module *ast.Module) []mutation {
	var all []mutation
	for _, rule := range module.Rules {
		ast.WalkExprs(rule, func(expr *ast.Expr) bool {
			all = append(all, ofExpression(expr)...)
			return false
		})
		visitor := ast.NewGenericVisitor(func(x any) bool {
			if expr, ok := x.(*ast.Expr); ok && expr.IsCall() && expr.Operator().String() == ast.Sprintf.Name {
				return true
			}
			term, ok := x.(*ast.Term)
			if !ok {
				return false
			}
			all = append(all, ofCollection(term)...)
			all = append(all, ofLiteral(term)...)
			return isWording(term)
		})
		if rule.Default {
			visitor.Walk(rule.Head) // a default has no conditions
			continue
		}
		visitor.Walk(rule)
	}
	return all
}

// isWording says whether a term is no decision: what is said of a fault, and the names in a reference.
func isWording(term *ast.Term) bool {
	switch value := term.Value.(type) {
	case ast.Call:
		return value[0].String() == ast.Sprintf.Name
	case ast.Ref:
		return value.IsGround()
	case ast.Object:
		return value.Get(ast.StringTerm("message")) != nil
	default:
		return false
	}
}

// ofLiteral changes a number, a text or a truth value.
func ofLiteral(term *ast.Term) []mutation {
	var other ast.Value
	switch value := term.Value.(type) {
	case ast.Number:
		n, ok := value.Int64()
		if !ok {
			return nil
		}
		other = ast.Number(json.Number(strconv.FormatInt(n+1, 10)))
	case ast.String:
		other = value + "~"
	case ast.Boolean:
		other = !value
	default:
		return nil
	}
	row := 0
	if term.Location != nil {
		row = term.Location.Row
	}
	return []mutation{{row, fmt.Sprintf("%s becomes %s", term, other), func() { term.Value = other }}}
}

func ofExpression(expr *ast.Expr) []mutation {
	var all []mutation
	row := 0
	if expr.Location != nil {
		row = expr.Location.Row
	}
	if expr.Negated {
		all = append(all, mutation{row, "not is left out of " + expr.String(), func() { expr.Negated = false }})
	}
	if !expr.IsCall() {
		return all
	}
	name := expr.Operator().String()
	if other, ok := opposites[name]; ok {
		all = append(all, mutation{row, fmt.Sprintf("%s becomes %s", expr, other.Infix), func() { expr.SetOperator(ast.NewTerm(other.Ref())) }})
	}
	if name == ast.Member.Name && !expr.Negated {
		all = append(all, mutation{row, "not comes before " + expr.String(), func() { expr.Negated = true }})
	}
	return all
}

// ofCollection leaves out each member of an array, a set or an object in turn.
func ofCollection(term *ast.Term) []mutation {
	members, without := membersOf(term.Value)
	row := 0
	if term.Location != nil {
		row = term.Location.Row
	}
	var all []mutation
	for i, member := range members {
		if slices.Contains(ofRatchet, member.Value.String()) {
			continue
		}
		all = append(all, mutation{row, fmt.Sprintf("%s is left out of %s", member, term), func() { term.Value = without(i) }})
	}
	return all
}

// ofRatchet are members of findings that only updates are compared by: judge.TestEverythingThatUpdatesAreComparedByIsNeeded
// leaves each of them out.
var ofRatchet = []string{`"content"`, `"amount"`}

// membersOf returns the members of a collection, an object's by their keys, and the collection without one of them.
func membersOf(collection ast.Value) (members []*ast.Term, without func(int) ast.Value) {
	switch value := collection.(type) {
	case *ast.Array:
		value.Foreach(func(m *ast.Term) { members = append(members, m) })
		return members, func(i int) ast.Value { return ast.NewArray(slices.Delete(slices.Clone(members), i, i+1)...) }
	case ast.Set:
		members = value.Slice()
		return members, func(i int) ast.Value { return ast.NewSet(slices.Delete(slices.Clone(members), i, i+1)...) }
	case ast.Object:
		var pairs [][2]*ast.Term
		value.Foreach(func(key, v *ast.Term) {
			members = append(members, key)
			pairs = append(pairs, [2]*ast.Term{key, v})
		})
		return members, func(i int) ast.Value { return ast.NewObject(slices.Delete(slices.Clone(pairs), i, i+1)...) }
	default:
		return nil, nil
	}
}
