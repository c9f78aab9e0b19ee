// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	defaultBudget = 2 * time.Second
	// defaultGrace is how long a query may take to notice that its time is over. One that does
	// not is left behind, keeps its place in the count of concurrent queries, and counts as failed.
	defaultGrace = 100 * time.Millisecond
)

// Engine judges objects by the set of rules that was last loaded. It is safe for concurrent use.
type Engine struct {
	clock   clock.PassiveClock
	budget  time.Duration
	grace   time.Duration
	running chan struct{}
	reader  *reader
	ward    *ward
	// log may be nil.
	log *DecisionLog
	// onQuarantine may be nil.
	onQuarantine func(rule string)
	// inventory may be nil.
	inventory Inventory

	current atomic.Pointer[set]

	// loading guards what only Load uses.
	loading sync.Mutex
	files   map[string]*rule
}

// Option changes an engine as it is made.
type Option func(*Engine)

// WithClock sets the clock that gives the time of a request that has none.
func WithClock(c clock.PassiveClock) Option {
	return func(e *Engine) { e.clock = c }
}

// WithBudget sets how long one evaluation may take; the rules that are not done by then fail. An
// answer comes at most the grace later, whatever a rule does.
func WithBudget(budget, grace time.Duration) Option {
	return func(e *Engine) { e.budget, e.grace = budget, grace }
}

// WithConcurrency sets how many queries run at the same time; others wait within their budget.
func WithConcurrency(n int) Option {
	return func(e *Engine) { e.running = make(chan struct{}, max(1, n)) }
}

// New returns an engine without rules. It denies everything until the first Load.
func New(opts ...Option) (*Engine, error) {
	e := &Engine{
		clock:   clock.RealClock{},
		budget:  defaultBudget,
		grace:   defaultGrace,
		running: make(chan struct{}, 4*runtime.GOMAXPROCS(0)),
		reader:  newReader(),
		ward:    newWard(),
		files:   map[string]*rule{},
	}
	for _, opt := range opts {
		opt(e)
	}
	return e, nil
}

// Ready says whether a set of rules is in force.
func (e *Engine) Ready() bool {
	return e.current.Load() != nil
}

// Digest names the set in force, empty before the first load. Equal digests mean equal rules that judge, equal
// modules that do not load, rules in quarantine and configuration, and the same version of the program.
func (e *Engine) Digest() string {
	if s := e.current.Load(); s != nil {
		return s.digest
	}
	return ""
}

// Reads says whether a rule that is on somewhere declares the data.
func (e *Engine) Reads(data Data) bool {
	s := e.current.Load()
	if s == nil {
		return false
	}
	for _, r := range s.rules {
		if slices.Contains(r.info.Data, data) && s.everOn(r) {
			return true
		}
	}
	return false
}

// Catalogue describes the rules of the set in force, sorted by id, with those that are off.
func (e *Engine) Catalogue() []RuleInfo {
	s := e.current.Load()
	if s == nil {
		return nil
	}
	infos := slices.Concat(s.pss.infos, s.native)
	for _, id := range slices.Sorted(maps.Keys(s.rules)) {
		infos = append(infos, s.rules[id].info)
	}
	slices.SortFunc(infos, func(a, b RuleInfo) int { return compare(a.ID, b.ID) })
	return infos
}
