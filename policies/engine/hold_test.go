// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// holdBuiltin is a builtin that only tests have, test.hold(name): it returns true when the Hold of that name lets it go,
// whoever cancels what.
const holdBuiltin = "test.hold"

// panicBuiltin is one too, test.panic(reason).
const panicBuiltin = "test.panic"

// holds are those of running tests, by name.
var holds sync.Map

func init() {
	ast.RegisterBuiltin(&ast.Builtin{Name: holdBuiltin, Decl: types.NewFunction(types.Args(types.S), types.B)})
	topdown.RegisterBuiltinFunc(holdBuiltin, func(_ topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		if h, ok := holds.Load(plain(operands[0])); ok {
			h.(*Hold).wait()
		}
		return iter(ast.InternedTerm(true))
	})
	ast.RegisterBuiltin(&ast.Builtin{Name: panicBuiltin, Decl: types.NewFunction(types.Args(types.S), types.B)})
	topdown.RegisterBuiltinFunc(panicBuiltin, func(_ topdown.BuiltinContext, operands []*ast.Term, _ func(*ast.Term) error) error {
		panic(plain(operands[0])) //nolint:forbidigo // what a fault of a builtin would do
	})
	allowedBuiltins = append(allowedBuiltins, holdBuiltin, panicBuiltin)
}

// Hold keeps what calls test.hold with its name.
type Hold struct {
	gate          chan struct{}
	entered, left atomic.Int32
}

// NewHold holds from now on.
func NewHold(t *testing.T, name string) *Hold {
	t.Helper()
	h := &Hold{gate: make(chan struct{})}
	holds.Store(name, h)
	t.Cleanup(func() { holds.Delete(name) })
	return h
}

func (h *Hold) wait() {
	h.entered.Add(1)
	<-h.gate
	h.left.Add(1)
}

// Calls counts those that came.
func (h *Hold) Calls() int { return int(h.entered.Load()) }

// Held counts those that have not gone.
func (h *Hold) Held() int { return int(h.entered.Load() - h.left.Load()) }

// Release lets all go, those of later too.
func (h *Hold) Release() { close(h.gate) }

// HoldLoading keeps loads, and what else puts a set together, until it is released.
func (e *Engine) HoldLoading() (release func()) {
	e.loading.Lock()
	return e.loading.Unlock
}

// ForgetModules empties what is remembered of modules, as happens when it is full.
func ForgetModules() {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	clear(compiled.entries)
	compiled.bytes = 0
}
