// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// What a file of others may have at most. The compiler cannot be cancelled, and what it does about a file grows faster
// than the file: with the square of a body and its calls, and twofold with each comprehension around another, so that
// twenty within each other, a hundred bytes, would keep it for hours.
const (
	maxModuleBytes = 64 << 10
	maxSteps       = 128
	maxNesting     = 5
	maxElse        = 100
)

// parseBounded reads a file that can be compiled in a bounded time.
func parseBounded(m Module) (*ast.Module, error) {
	if len(m.Content) > maxModuleBytes {
		return nil, fmt.Errorf("%s: the file has %d bytes, at most %d are read: split it into rules of their own, and give long lists as parameters",
			m.file(), len(m.Content), maxModuleBytes)
	}
	parsed, err := parse(m.file(), string(m.Content))
	if err != nil {
		return nil, explain(m, err)
	}
	return parsed, checkShape(m, parsed)
}

// checkShape refuses what takes too long to compile however short it is.
func checkShape(m Module, parsed *ast.Module) error {
	var errs []error
	refuse := func(r *ast.Rule, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:%d: %s", m.file(), r.Location.Row, fmt.Sprintf(format, args...)))
	}
	for _, r := range parsed.Rules {
		others := 0
		for other := r.Else; other != nil; other = other.Else {
			others++
		}
		if others > maxElse {
			refuse(r, "the rule has %d else, at most %d are read: look the value up in an object", others, maxElse)
			continue
		}
		s := shapeOf(r)
		if s.nesting > maxNesting {
			refuse(r, "comprehensions and every stand %d deep within each other, at most %d are read: give the inner ones a rule or function of their own",
				s.nesting, maxNesting)
		}
		if s.steps > maxSteps {
			refuse(r, "a body has %d expressions and calls, at most %d are read: make several rules of it", s.steps, maxSteps)
		}
	}
	return errors.Join(errs...)
}

// shape is what the time to compile a rule depends on.
type shape struct {
	// nesting is how deep closures stand within each other, and steps what the longest body has.
	nesting, steps int
}

// shapeOf is that of a rule with its else, or of a closure.
func shapeOf(node any) shape {
	var inner shape
	own, begun := 0, false
	ast.NewGenericVisitor(func(x any) bool {
		if !begun {
			begun = true
			return false
		}
		switch x := x.(type) {
		case *ast.Expr, ast.Call:
			own++
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every:
			inner.add(shapeOf(x), 1)
			return true
		case *ast.Rule:
			inner.add(shapeOf(x), 0)
			return true
		}
		return false
	}).Walk(node)
	inner.steps = max(inner.steps, own)
	return inner
}

func (s *shape) add(other shape, deeper int) {
	s.nesting, s.steps = max(s.nesting, other.nesting+deeper), max(s.steps, other.steps)
}
