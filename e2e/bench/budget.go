// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// perCycle is how many writes of the controller a claim may cost until the pool is full
	// again.
	perCycle = 9
	// promised is the most claims a second that are kept up with. More are only recorded.
	promised = 10
	// slowest and busiest are the rates whose latencies are compared.
	slowest, busiest = 2, promised
	// slowdown is how many times as long a claim may take at the busiest of these rates as at
	// the slowest. It takes no longer on a quiet machine; on one that got five times as much
	// to do as it can between the two, it took three times as long.
	slowdown = 6
	// perRoundTrip is how many times as long a claim may take as its bare round trips, made
	// in the same seconds: twice is usual, and less when the machine is busy.
	perRoundTrip = 3
)

// Excesses are what results show that is beyond the budget: more writes than a cycle may
// cost, claims that queue up at a rate that is kept up with, and claims that take longer the
// more there are. All of it is a count, or a ratio within one run.
func Excesses(results []Result) []error {
	var found []error
	median := map[int]time.Duration{}
	for i := range results {
		r := &results[i]
		if err := r.Overspent(); err != nil {
			found = append(found, err)
		}
		if r.PerSecond > 0 && r.PerSecond <= promised && r.Waiting > r.PerSecond {
			found = append(found, fmt.Errorf("%s: %d claims waited at once, which is more than come in a second", r.Load, r.Waiting))
		}
		median[r.PerSecond] = r.Percentile(50)
	}
	if idle, busy := median[slowest], median[busiest]; idle > 0 && busy > slowdown*idle {
		found = append(found, fmt.Errorf("at %d claims/s half of them took up to %s, which is more than %d times the %s at %d claims/s",
			busiest, busy, slowdown, idle, slowest))
	}
	return found
}

// Overspent says so when the claims cost more writes than they may, on a machine of any speed, and which they were.
func (r *Result) Overspent() error {
	if writes, claims := r.writes(), len(r.Latencies); writes > perCycle*claims {
		return fmt.Errorf("%s: %d claims cost %d writes, which is more than %d each:\n%s", r.Load, claims, writes, perCycle, Breakdown(r))
	}
	return nil
}

// takes is the write that takes a Sandbox for a claim.
const takes = "patch sandboxes"

// Path is what a claim cost of all that was written to it and to its Sandbox, in that order:
// what came before anything was written to the claim and before its Sandbox was taken, the
// pool cost.
func Path(writes []string) []string {
	first := slices.IndexFunc(writes, func(write string) bool { return write == takes || strings.Contains(write, "sandboxclaims") })
	if first < 0 {
		return nil
	}
	return writes[first:]
}

// MostWaiting is how many of some claims waited at once, of which each was asked for at one
// time and served at another.
func MostWaiting(asked, served []time.Time) int {
	type step struct {
		at    time.Time
		waits int
	}
	var steps []step
	for _, at := range asked {
		steps = append(steps, step{at, 1})
	}
	for _, at := range served {
		steps = append(steps, step{at, -1})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.waits, b.waits)) })
	waiting, most := 0, 0
	for _, s := range steps {
		waiting += s.waits
		most = max(most, waiting)
	}
	return most
}
