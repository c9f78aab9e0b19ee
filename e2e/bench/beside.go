// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// quicker is how many times as long as ours a claim of the original takes at a rate, in
	// the middle and at the 99th of 100.
	quicker = 5
	// quickerAtOnce is the same of the middle of a burst.
	quickerAtOnce = 3
)

// Beside are results of the controller that this API comes from and of ours, under the
// same loads, measured in turn on one machine.
type Beside struct {
	Original, Ours []Result
}

// Sum adds the results of the same loads.
func Sum(a, b []Result) []Result {
	sum := slices.Clone(b)
	for i := range a {
		earlier, total := &a[i], &sum[i]
		total.Latencies = slices.Concat(earlier.Latencies, total.Latencies)
		total.Doubles = slices.Concat(earlier.Doubles, total.Doubles)
		total.Waiting = max(earlier.Waiting, total.Waiting)
		total.Took += earlier.Took
		total.Adopted += earlier.Adopted
		total.Controller += earlier.Controller
		total.APIServer += earlier.APIServer
		total.Writes = maps.Clone(total.Writes)
		for what, n := range earlier.Writes {
			total.Writes[what] += n
		}
	}
	return sum
}

// Table renders both in Markdown, and how many times as much ours takes.
func (b *Beside) Table(version string) string {
	var table strings.Builder
	table.WriteString("| load | controller | " + columns + "|---|---|" + rule)
	for i := range b.Ours {
		original, ours := &b.Original[i], &b.Ours[i]
		fmt.Fprintf(&table, "| %s | original %s | %s", ours.Load, version, original.row())
		fmt.Fprintf(&table, "| | ours | %s", ours.row())
		fmt.Fprintf(&table, "| | ours to the original | | %.2f | %.2f | | %.2f | %.2f | %.2f | |\n",
			ratio(ours.Percentile(50), original.Percentile(50)), ratio(ours.Percentile(99), original.Percentile(99)),
			ratio(ours.writes(), original.writes()), ratio(ours.Controller, original.Controller), ratio(ours.APIServer, original.APIServer))
	}
	return table.String()
}

func ratio[T int | time.Duration](a, b T) float64 { return float64(a) / float64(max(1, b)) }

// Misses are what ours is not better at by what was promised: latencies at a rate and in a
// burst, and no claim served twice. A rate at which one of the two does not serve every
// claim from the pool compares nothing.
func (b *Beside) Misses() []error {
	var misses []error
	for i := range b.Ours {
		original, ours := &b.Original[i], &b.Ours[i]
		misses = append(misses, ours.Doubles...)
		for _, r := range []*Result{original, ours} {
			if r.PerSecond > 0 && r.Adopted < len(r.Latencies) {
				misses = append(misses, fmt.Errorf("%s: %d of %d claims had a Sandbox of the pool", r.Load, r.Adopted, len(r.Latencies)))
			}
		}
		if ours.PerSecond == 0 {
			misses = append(misses, ours.slower(original, 50, quickerAtOnce)...)
			continue
		}
		misses = append(misses, ours.slower(original, 50, quicker)...)
		misses = append(misses, ours.slower(original, 99, quicker)...)
	}
	return misses
}

// slower says so when a percentile is more than such a part of another result's.
func (r *Result) slower(than *Result, percent, times int) []error {
	took, bound := r.Percentile(percent), than.Percentile(percent)/time.Duration(times)
	if took <= bound {
		return nil
	}
	return []error{fmt.Errorf("%s: the p%d is %s, want %s at most, 1/%d of the original's", r.Load, percent, took, bound, times)}
}
