// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	timeouts map[[sha256.Size]byte]int

	// tripped are the rules that nobody has taken out of the queries yet.
	tripped map[string]bool
	// working is closed when the goroutine that takes them out ends; nil while there is none.
	working chan struct{}
	closed  bool
}

func newWard() *ward {
	return &ward{timeouts: map[[sha256.Size]byte]int{}, tripped: map[string]bool{}}
}

// note counts the outcome of a rule that ran alone. It says whether the rule goes into quarantine now. The
// rules of the library are reviewed and bounded, and nobody can correct their content: one that is late is run again
// with the next request, since in quarantine it would refuse everything until a restart, which anybody could bring
// about who finds three objects that it is slow on.
func (w *ward) note(r *rule, err error) bool {
	if r.info.Source == SourceLibrary {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(err, errRunaway) {
		if err == nil {
			delete(w.timeouts, r.content)
		}
		return false
	}
	w.timeouts[r.content]++
	return w.timeouts[r.content] == quarantineAfter
}

// holds returns the ids of the rules that are in quarantine.
func (w *ward) holds(rules map[string]*rule) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string]bool{}
	for id, r := range rules {
		if w.timeouts[r.content] >= quarantineAfter {
			held[id] = true
		}
	}
	return held
}

// retain forgets all rules but these.
func (w *ward) retain(rules map[string]*rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[[sha256.Size]byte]bool{}
	for _, r := range rules {
		known[r.content] = true
	}
	maps.DeleteFunc(w.timeouts, func(content [sha256.Size]byte, _ int) bool { return !known[content] })
}

// WithQuarantineHook sets what is called, in a goroutine of the engine, when a rule is in quarantine. The next one goes
// there after it returns.
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

// quarantine has a rule taken out of the queries, by one goroutine for all: putting the others together again takes
// longer than a request should wait that has its findings.
func (e *Engine) quarantine(ctx context.Context, id string) {
	w := e.ward
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tripped[id] = true
	if w.working == nil && !w.closed {
		w.working = make(chan struct{})
		go e.takeOut(context.WithoutCancel(ctx), w.working)
	}
}

// takeOut ends when no rule is left that tripped.
func (e *Engine) takeOut(ctx context.Context, working chan<- struct{}) {
	defer close(working)
	for {
		tripped := e.ward.next()
		if len(tripped) == 0 {
			return
		}
		held := e.withoutHeld(ctx)
		for _, id := range tripped {
			if held[id] && e.onQuarantine != nil {
				e.onQuarantine(id)
			}
		}
	}
}

// next returns the rules that tripped meanwhile; none ends the work.
func (w *ward) next() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	tripped := slices.Sorted(maps.Keys(w.tripped))
	clear(w.tripped)
	if len(tripped) == 0 || w.closed {
		w.working = nil
		return nil
	}
	return tripped
}

// withoutHeld takes the rules that are held out of the queries of the set in force, whichever that is by now, and
// returns them. What was compiled with them compiles without them; if it did not, they would go on to fail.
func (e *Engine) withoutHeld(ctx context.Context) map[string]bool {
	e.loading.Lock()
	defer e.loading.Unlock()
	s := e.current.Load()
	held := e.ward.holds(s.rules)
	if maps.Equal(held, s.held) {
		return held
	}
	next, err := s.without(ctx, held)
	if err != nil {
		return s.held
	}
	e.current.Store(next)
	return held
}

// Close waits until the engine works on nothing but the evaluations that run. Rules that do not end are taken out of
// the queries no more.
func (e *Engine) Close() {
	e.ward.mu.Lock()
	e.ward.closed = true
	working := e.ward.working
	e.ward.mu.Unlock()
	if working != nil {
		<-working
	}
}
