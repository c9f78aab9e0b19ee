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

// Misses are what ours is not better at: it serves each load in less time, in the middle and
// at the 99th of 100, at the writes that it may cost, and no claim twice. A rate at which one
// of the two does not serve every claim from the pool compares nothing.
func (b *Beside) Misses() []error {
	var misses []error
	for i := range b.Ours {
		original, ours := &b.Original[i], &b.Ours[i]
		misses = append(misses, ours.Doubles...)
		if err := ours.Overspent(); err != nil {
			misses = append(misses, err)
		}
		for _, r := range []*Result{original, ours} {
			if r.PerSecond > 0 && r.Adopted < len(r.Latencies) {
				misses = append(misses, fmt.Errorf("%s: %d of %d claims had a Sandbox of the pool", r.Load, r.Adopted, len(r.Latencies)))
			}
		}
		for _, percent := range []int{50, 99} {
			if took, theirs := ours.Percentile(percent), original.Percentile(percent); took >= theirs {
				misses = append(misses, fmt.Errorf("%s: the p%d is %s, want less than the original's %s", ours.Load, percent, took, theirs))
			}
		}
	}
	return misses
}
