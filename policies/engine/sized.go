// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// A rule makes much of little without any builtin: [x, x] of [x, x], thirty times. OPA holds such a value by reference,
// but what compares, copies or hands it out takes all of it in one step that no deadline ends, and so does the
// checker of its type. Therefore the compiler hands whatever a rule composes to the builtin sized, which returns it if
// it is not more than a call may make, and whose type is that of anything.
var sized = &ast.Builtin{Name: "internal.sized", Decl: types.NewFunction(types.Args(types.A), types.A)}

func returnSized(_ topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
	return iter(operands[0])
}

// sizing is the stage of the compiler that does so, in the modules of those files: after the order of expressions
// is settled, and before types are checked.
func sizing(files []string) ast.CompilerStageDefinition {
	return ast.CompilerStageDefinition{Name: "BoundWhatIsComposed", MetricName: "compile_stage_bound_composed", Stage: func(c *ast.Compiler) *ast.Error {
		for _, file := range files {
			s := &sizer{}
			ast.WalkRules(c.Modules[file], func(r *ast.Rule) bool {
				s.rule(r)
				return false
			})
			if s.refused != nil {
				return s.refused
			}
		}
		return nil
	}}
}

// sizer rewrites one module.
type sizer struct {
	variables int
	refused   *ast.Error
}

// rule also takes the finding of a set and the member of an object, which may be anything that is known elsewhere:
// each is held to the bound once more where there are many.
func (s *sizer) rule(r *ast.Rule) {
	body := s.body(r.Body, with(ast.ReservedVars, r.Head.Args...))
	many := r.Head.RuleKind() == ast.MultiValue || len(r.Head.Ref()) > 1
	hand := func(term *ast.Term) *ast.Term {
		if _, isVar := term.Value.(ast.Var); composes(term) || (isVar && many) {
			return s.hand(&body, term)
		}
		return term
	}
	if r.Head.Value != nil {
		r.Head.Value = hand(r.Head.Value)
	}
	if r.Head.Key != nil {
		r.Head.Key = hand(r.Head.Key)
	}
	r.Body = ast.NewBody(body...)
}

// body rewrites the expressions of a body in their order. Known are the variables that have a value before it.
func (s *sizer) body(body ast.Body, known ast.VarSet) []*ast.Expr {
	known = known.Copy()
	var exprs []*ast.Expr
	for _, expr := range body {
		s.closures(expr, known)
		switch terms := expr.Terms.(type) {
		case []*ast.Term:
			s.call(&exprs, expr, terms, known)
		case *ast.Every:
			if composes(terms.Domain) {
				terms.Domain = s.hand(&exprs, terms.Domain)
			}
		case *ast.Term:
		default:
			s.refuse(expr, fmt.Sprintf("%T is nothing that a rule may be made of", terms))
		}
		exprs = append(exprs, expr)
		if !expr.Negated {
			known.Update(variablesOf(expr))
		}
	}
	return exprs
}

// closures rewrites the bodies within an expression or a term.
func (s *sizer) closures(node any, known ast.VarSet) {
	inner := func(body *ast.Body, heads ...**ast.Term) {
		exprs := s.body(*body, known)
		for _, head := range heads {
			if composes(*head) {
				*head = s.hand(&exprs, *head)
			}
		}
		*body = ast.NewBody(exprs...)
	}
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.ArrayComprehension:
			inner(&x.Body, &x.Term)
		case *ast.SetComprehension:
			inner(&x.Body, &x.Term)
		case *ast.ObjectComprehension:
			inner(&x.Body, &x.Key, &x.Value)
		case *ast.Every:
			s.closures(x.Domain, known)
			x.Body = ast.NewBody(s.body(x.Body, with(known, x.Key, x.Value))...)
		default:
			return false
		}
		return true
	}).Walk(node)
}

func with(known ast.VarSet, terms ...*ast.Term) ast.VarSet {
	more := known.Copy()
	for _, term := range terms {
		if term != nil {
			more.Update(variablesOf(term))
		}
	}
	return more
}

// call rewrites what an expression is given. What has variables without a value is not composed there but taken apart.
func (s *sizer) call(exprs *[]*ast.Expr, expr *ast.Expr, terms []*ast.Term, known ast.VarSet) {
	name := expr.Operator().String()
	if _, is := growing[name]; is {
		return
	}
	apart := 0
	for i, term := range terms[1:] {
		switch {
		case !composes(term):
		case variablesOf(term).DiffCount(known) == 0:
			terms[i+1] = s.hand(exprs, term)
		default:
			apart++
		}
	}
	if apart > 1 {
		s.refuse(expr, "both sides take something apart: write an assignment (:=) for each")
	}
}

// hand adds the call of sized for the term, and returns its outcome.
func (s *sizer) hand(exprs *[]*ast.Expr, term *ast.Term) *ast.Term {
	if isComprehension(term) {
		made := s.variable(term)
		s.add(exprs, ast.Equality.Expr(made, term), term)
		term = made
	}
	outcome := s.variable(term)
	s.add(exprs, sized.Expr(term, outcome), term)
	return outcome
}

func (s *sizer) add(exprs *[]*ast.Expr, expr *ast.Expr, term *ast.Term) {
	expr.Generated = true
	*exprs = append(*exprs, expr.SetLocation(term.Location))
}

func (s *sizer) variable(term *ast.Term) *ast.Term {
	s.variables++
	return ast.VarTerm(fmt.Sprintf("%ssized%d__", ast.LocalVarPrefix, s.variables)).SetLocation(term.Location)
}

func (s *sizer) refuse(expr *ast.Expr, message string) {
	if s.refused == nil {
		s.refused = ast.NewError(ast.CompileErr, expr.Location, "%s", message)
	}
}

// composes says whether the term makes something out of what variables stand for.
func composes(term *ast.Term) bool {
	switch value := term.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return !value.IsGround()
	default:
		return isComprehension(term)
	}
}

func isComprehension(term *ast.Term) bool {
	switch term.Value.(type) {
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return true
	default:
		return false
	}
}

// variablesOf are those that have a value after the node; those within comprehensions are theirs alone.
func variablesOf(node any) ast.VarSet {
	visitor := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true})
	visitor.Walk(node)
	return visitor.Vars()
}
