// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rush lets what nobody waits for go after the claims that somebody waits for.
//
// In a burst, what is written about a claim that has its Sandbox competes with what gives
// the others theirs. The count of those is a hint: a process that has just begun knows of
// none, and what waits for them waits no longer than Longest.
package rush

import (
	"sync/atomic"
	"time"
)

const (
	// Longest is how long anything waits, with the time that it waits in any case.
	Longest = time.Second
	// again is how often what waits looks whether it need not any more.
	again = 100 * time.Millisecond
)

// Rush counts the claims under way: those of which nothing was said yet. The zero one has
// none.
type Rush struct {
	// AfterFunc calls a function after a time. Nil does it as package time does.
	AfterFunc func(time.Duration, func())

	underway atomic.Int64
}

// Begin counts a claim.
func (r *Rush) Begin() { r.underway.Add(1) }

// End takes a claim out of the count.
func (r *Rush) End() { r.underway.Add(-1) }

// Busy says whether claims are under way.
func (r *Rush) Busy() bool { return r.underway.Load() > 0 }

// After calls a function once, after that time, or as soon afterwards as no claim is under
// way: within Longest.
func (r *Rush) After(wait time.Duration, call func()) {
	r.after(wait, func() { r.look(Longest-wait, call) })
}

// look calls the function, or looks again later, if there is time left for it.
func (r *Rush) look(left time.Duration, call func()) {
	wait := min(again, left)
	if wait <= 0 || !r.Busy() {
		call()
		return
	}
	r.after(wait, func() { r.look(left-wait, call) })
}

func (r *Rush) after(wait time.Duration, call func()) {
	if r.AfterFunc != nil {
		r.AfterFunc(wait, call)
		return
	}
	time.AfterFunc(wait, call)
}
