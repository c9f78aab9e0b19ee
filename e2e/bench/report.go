// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Result is what one load of claims cost. A cycle is a claim's way from its creation
// until it is deleted and the pool is full again.
type Result struct {
	// Load names the load.
	Load string
	// PerSecond is how many claims came a second; 0 when they did not come at a rate.
	PerSecond int
	// Waiting is how many claims waited at once.
	Waiting int
	// Latencies are the times from a client's request to its news that the claim is
	// Ready.
	Latencies []time.Duration
	// Took is the time from the first request to the last claim that became Ready.
	Took time.Duration
	// Writes are those of the controller, by verb and resource.
	Writes map[string]int
	// Controller and APIServer are processor times.
	Controller, APIServer time.Duration
	// Adopted is how many claims had a Sandbox of the pool.
	Adopted int
	// Doubles are the claims that had two Sandboxes, and the Sandboxes that had two claims.
	Doubles []error
}

// Percentile is the latency that so many percent of the claims did not exceed.
func (r *Result) Percentile(percent int) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Latencies))
	rank := (len(sorted)*percent + 99) / 100 // rounded up
	return sorted[max(0, rank-1)]
}

func (r *Result) writes() int {
	total := 0
	for _, n := range r.Writes {
		total += n
	}
	return total
}

// perCycle divides by the number of claims.
func (r *Result) perCycle(total float64) float64 {
	return total / float64(max(1, len(r.Latencies)))
}

// Table renders results in Markdown.
func Table(results []Result) string {
	var table strings.Builder
	table.WriteString("| load | " + columns + "|---|" + rule)
	for i := range results {
		fmt.Fprintf(&table, "| %s | %s", results[i].Load, results[i].row())
	}
	return table.String()
}

// columns and rule are the head of what row renders.
const (
	columns = "claims | p50 ms | p99 ms | claims/s | writes/cycle | controller CPU ms/cycle | apiserver CPU ms/cycle | served twice |\n"
	rule    = "---|---|---|---|---|---|---|---|\n"
)

func (r *Result) row() string {
	return fmt.Sprintf("%d | %d | %d | %.1f | %.1f | %.0f | %.0f | %d |\n",
		len(r.Latencies), r.Percentile(50).Milliseconds(), r.Percentile(99).Milliseconds(),
		float64(len(r.Latencies))/max(r.Took.Seconds(), 1e-9), r.perCycle(float64(r.writes())),
		r.perCycle(milliseconds(r.Controller)), r.perCycle(milliseconds(r.APIServer)), len(r.Doubles))
}

// Breakdown renders in Markdown what a cycle of one load wrote, by verb and resource.
func Breakdown(result *Result) string {
	var table strings.Builder
	table.WriteString("| write | a cycle |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(result.Writes)) {
		fmt.Fprintf(&table, "| %s | %.2f |\n", what, result.perCycle(float64(result.Writes[what])))
	}
	return table.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Replace puts a text between the marks of a section of a document, which are comments
// of their own lines.
func Replace(document, section, text string) (string, error) {
	begin, end := "<!-- begin: "+section+" -->\n", "<!-- end: "+section+" -->\n"
	head, rest, opened := strings.Cut(document, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", errors.New("the document has no lines " + strings.TrimSpace(begin) + " and " + strings.TrimSpace(end))
	}
	return head + begin + text + end + tail, nil
}
