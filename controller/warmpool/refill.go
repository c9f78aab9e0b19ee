// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"time"
)

// Refill bounds how fast a pool makes members.
type Refill struct {
	// MaxBatch is how many members a pass makes at most, and how many it deletes.
	MaxBatch int
	// Delay is how long a pool that was full waits before it makes up for members that
	// are missing.
	Delay time.Duration
	// PerSecond is how many members a pool makes each second at most; 0 for no bound.
	PerSecond float64
}

// refill is how far a pool has used what Refill allows.
type refill struct {
	// full is true once the pool had all its members.
	full bool
	// missingSince is when a full pool first missed a member.
	missingSince time.Time
	// tokens are the members that may be made now; filled is when that was true.
	tokens float64
	filled time.Time
}

// allow says how many of those that are to be made may be made now, and when to ask for
// the rest; zero when there is none, or when the next event will do.
func (r *refill) allow(limits Refill, p plan, now time.Time) (count int, again time.Time) {
	if p.missing() == 0 {
		r.full, r.missingSince = true, time.Time{}
		return 0, time.Time{}
	}
	if r.full && r.missingSince.IsZero() {
		r.missingSince = now
	}
	if start := r.missingSince.Add(limits.Delay); r.full && now.Before(start) {
		return 0, start
	}
	count = min(p.create, limits.MaxBatch)
	if limits.PerSecond > 0 {
		return r.draw(limits.PerSecond, count, now)
	}
	return count, time.Time{}
}

// draw takes tokens from a bucket that holds one second's worth, or one.
func (r *refill) draw(rate float64, wanted int, now time.Time) (count int, again time.Time) {
	capacity := max(1, rate)
	if r.filled.IsZero() {
		r.tokens = capacity
	} else {
		r.tokens = min(capacity, r.tokens+now.Sub(r.filled).Seconds()*rate)
	}
	r.filled = now
	count = min(wanted, int(r.tokens))
	if count < wanted {
		wait := (1 - (r.tokens - float64(count))) / rate
		again = now.Add(time.Duration(wait*float64(time.Second)) + time.Millisecond)
	}
	return count, again
}

// spend takes what was made.
func (r *refill) spend(count int) {
	r.tokens -= float64(count)
}

const (
	firstRefusalRetry = time.Second
	// lastRefusalRetry is the longest pause after a refusal by a quota or a policy, which may
	// last; lastFailureRetry that after any other failure: an apiserver that was away is soon
	// back, and claims wait for the refill.
	lastRefusalRetry = time.Minute
	lastFailureRetry = 5 * time.Second
)

// refusal is what the apiserver answered to the last create that failed.
type refusal struct {
	kind    hold
	message string
	// subject is what was refused: the versions of pool and template, and the tier.
	// Another subject is tried at once.
	subject string
	// retryAt is when the same is tried again; wait is how long the pause is.
	retryAt time.Time
	wait    time.Duration
}

// holds says whether nothing is made for now.
func (r *refusal) holds(subject string, now time.Time) bool {
	return r.message != "" && r.subject == subject && now.Before(r.retryAt)
}

// note remembers a failure and doubles the pause.
func (r *refusal) note(kind hold, message, subject string, now time.Time) {
	wait := min(lastRefusalRetry, max(firstRefusalRetry, 2*r.wait))
	switch {
	case r.subject != subject:
		wait = firstRefusalRetry
	case kind == notHeld:
		wait = min(lastFailureRetry, wait)
	}
	*r = refusal{kind: kind, message: message, subject: subject, wait: wait, retryAt: now.Add(wait)}
}
