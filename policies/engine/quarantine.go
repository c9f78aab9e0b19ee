// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// quarantineAfter is how many times a rule may fail to finish before it is not run any more. What it
// judges in time by itself starts the count anew; together with others nobody knows what it took.
const quarantineAfter = 3

// errRunaway is the timeout of a rule that had its whole time to itself.
var errRunaway = fmt.Errorf("%w, with its whole time to itself", errTimeout)

var errQuarantined = fmt.Errorf("it did not finish in time %d times and is not run any more until it changes", quarantineAfter)

// ward counts how often rules did not finish. It knows them by their content, so that a reload of the same
// content changes nothing and new content starts anew.
type ward struct {
	mu       sync.Mutex
	timeouts map[*ast.Module]int
}

// note counts the outcome of a rule that ran alone. It says whether the rule goes into quarantine now. The
// rules of the library are reviewed and bounded: one that is late on a crowded machine is judged again with the
// next request, since in quarantine it would refuse everything until a restart.
func (w *ward) note(r *rule, err error) bool {
	if r.info.Source == SourceLibrary {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(err, errRunaway) {
		if err == nil {
			delete(w.timeouts, r.module)
		}
		return false
	}
	w.timeouts[r.module]++
	return w.timeouts[r.module] == quarantineAfter
}

// holds returns the ids of the rules that are in quarantine.
func (w *ward) holds(rules map[string]*rule) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string]bool{}
	for id, r := range rules {
		if w.timeouts[r.module] >= quarantineAfter {
			held[id] = true
		}
	}
	return held
}

// retain forgets all rules but these.
func (w *ward) retain(rules map[string]*rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[*ast.Module]bool{}
	for _, r := range rules {
		known[r.module] = true
	}
	maps.DeleteFunc(w.timeouts, func(m *ast.Module, _ int) bool { return !known[m] })
}

// WithQuarantineHook sets what is called, in a goroutine of the request, when a rule goes into quarantine.
func WithQuarantineHook(hook func(rule string)) Option {
	return func(e *Engine) { e.onQuarantine = hook }
}

// Quarantined lists the rules of the set in force that are not run any more, because they did not finish in
// time again and again. Every object of their kinds has a finding for it.
func (e *Engine) Quarantined() []string {
	s := e.current.Load()
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.held))
}

// quarantine takes the rules that are held out of the queries, unless another set came into force meanwhile.
func (e *Engine) quarantine(ctx context.Context, s *set, id string) {
	e.loading.Lock()
	next, err := s.without(ctx, e.ward.holds(s.rules))
	swapped := err == nil && e.current.CompareAndSwap(s, next)
	e.loading.Unlock()
	if swapped && e.onQuarantine != nil {
		e.onQuarantine(id)
	}
}
