// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// What one call of a builtin may make. A text that is joined with itself thirty times has a billion characters,
// and a number that is squared as often cannot be cancelled: no deadline helps against either, so such a call is an
// error of its rule.
const (
	// mostText is in bytes; a member of a collection counts as memberSize, one that is another's too as placeSize.
	mostText   = 8 << 20
	memberSize = 32
	placeSize  = 16
	// mostDigits is of numbers.
	mostDigits = 1 << 14
	// mostInAll is what all calls of one run may make together, in bytes.
	mostInAll = 32 << 20
	// mostCompared is how often one call may look at a character; it cannot be cancelled either.
	mostCompared = 1 << 28
	// mostErrors is how many calls of one run may err.
	mostErrors = 1000
)

func init() {
	for _, own := range []*ast.Builtin{sized, defined} {
		ast.RegisterBuiltin(own)
	}
	topdown.RegisterBuiltinFunc(sized.Name, returnSized)
	topdown.RegisterBuiltinFunc(defined.Name, returnDefined)
	for _, name := range allowedBuiltins {
		if inner := topdown.GetBuiltin(name); inner != nil {
			topdown.RegisterBuiltinFunc(name, limitOf(name).around(inner))
			// Without its context a call knows no account.
			ast.BuiltinMap[name].CanSkipBctx = false
		}
	}
}

// limit is how much a call of a builtin may be given, make and compare; without an estimate it is little.
type limit struct {
	digits, makes, compares func(operands []*ast.Term) float64
}

func limitOf(name string) limit {
	l := limit{computing[name], growing[name], comparing[name]}
	if slices.Contains(sharing, name) {
		l.makes = shared
	}
	return l
}

// around makes a call of the builtin an error that would make more than that, and ends a run that made too much in
// all, or has too many errors: each is kept to its end.
func (l limit) around(inner topdown.BuiltinFunc) topdown.BuiltinFunc {
	return func(call topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		a, counted := call.Cancel.(*account)
		err := l.check(a, operands)
		if err == nil {
			err = inner(call, operands, iter)
		}
		if err == nil || !counted || errors.As(err, new(topdown.Halt)) {
			return err
		}
		if a.errors++; a.errors > mostErrors {
			return topdown.Halt{Err: err}
		}
		return err
	}
}

func (l limit) check(a *account, operands []*ast.Term) error {
	if l.compares != nil && l.compares(operands) > mostCompared {
		return fmt.Errorf("it would compare more than the %d characters that are allowed", mostCompared)
	}
	digits, made := 0.0, 0.0
	if l.digits != nil {
		digits = l.digits(operands)
	}
	if l.makes != nil {
		made = l.makes(operands)
	}
	switch {
	case digits > mostDigits:
		return fmt.Errorf("it would compute with more than the %d digits that are allowed", mostDigits)
	case made > mostText:
		return fmt.Errorf("it would make more than the %d characters that are allowed", mostText)
	case a != nil && !a.take(digits+made):
		return topdown.Halt{Err: fmt.Errorf("it made more than the %d characters that are allowed in all", mostInAll)}
	}
	return nil
}

// account is what one run has made so far. It is what cancels the run too, since that is what each call is given.
type account struct {
	cancelled atomic.Bool
	made      float64
	errors    int
}

// Cancel ends the run with its next step.
func (a *account) Cancel() { a.cancelled.Store(true) }

// Cancelled says whether the run is to end.
func (a *account) Cancelled() bool { return a.cancelled.Load() }

func (a *account) take(size float64) bool {
	a.made += size
	return a.made <= mostInAll
}
