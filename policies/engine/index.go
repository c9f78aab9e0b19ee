// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// indexedBuiltins are the builtins that OPA's index of rules decides by itself, without the error that
// they would give for an operand of the wrong type.
var indexedBuiltins = []string{
	ast.StartsWith.Name, ast.EndsWith.Name, ast.AnyPrefixMatch.Name, ast.AnySuffixMatch.Name, ast.GlobMatch.Name,
}

// keepErrors rewrites the calls of those builtins, "f(x)" to "f(x) == true": the index passes over a call
// whose answer is used, so the rule is evaluated and the error seen. What else is indexed, equality and
// membership, never errs.
func keepErrors(parsed *ast.Module) {
	ast.WalkExprs(parsed, func(expr *ast.Expr) bool {
		terms, ok := expr.Terms.([]*ast.Term)
		if ok && !expr.Negated && slices.Contains(indexedBuiltins, expr.Operator().String()) {
			call := &ast.Term{Value: ast.Call(terms), Location: expr.Location}
			expr.Terms = []*ast.Term{
				ast.NewTerm(ast.Equal.Ref()).SetLocation(expr.Location), call, ast.BooleanTerm(true).SetLocation(expr.Location),
			}
		}
		return false
	})
}
