// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// took makes a result of two claims of the pool.
func took(perSecond int, p50, p99 time.Duration) Result {
	return Result{Load: "it", PerSecond: perSecond, Latencies: []time.Duration{p50, p99}, Adopted: 2, Writes: map[string]int{"create pods": 2}}
}

func TestMisses(t *testing.T) {
	const ms = time.Millisecond
	twice, cold := took(2, ms, ms), took(2, 5*ms, 10*ms)
	twice.Doubles, cold.Adopted = []error{errors.New("claim a had 2 Sandboxes")}, 1
	wasteful := took(2, 10*ms, 10*ms)
	wasteful.Writes = map[string]int{"create pods": 19}
	burstTwice := took(0, 30*ms, 30*ms)
	burstTwice.Doubles, burstTwice.Adopted = []error{errors.New("claim b had 2 Sandboxes")}, 1
	cases := map[string]struct {
		original, ours Result
		want           []string
	}{
		"quicker": {took(2, 50*ms, 100*ms), took(2, 49*ms, 99*ms), nil},
		"as slow": {took(0, 50*ms, 100*ms), took(0, 50*ms, 100*ms), []string{
			"it: the p50 is 50ms, want less than the original's 50ms",
			"it: the p99 is 100ms, want less than the original's 100ms",
		}},
		"slower in the middle":  {took(2, 50*ms, 100*ms), took(2, 51*ms, 99*ms), []string{"it: the p50 is 51ms, want less than the original's 50ms"}},
		"slower at the far end": {took(2, 50*ms, 100*ms), took(2, 10*ms, 101*ms), []string{"it: the p99 is 101ms, want less than the original's 100ms"}},
		"ours writes more than a cycle may cost": {took(2, 50*ms, 100*ms), wasteful, []string{
			"it: 2 claims cost 19 writes, which is more than 9 each:\n| write | a cycle |\n|---|---|\n| create pods | 9.50 |\n",
		}},
		"ours serves a claim twice":                      {took(2, 50*ms, 100*ms), twice, []string{"claim a had 2 Sandboxes"}},
		"the original does, and starts cold, in a burst": {burstTwice, took(0, 10*ms, 10*ms), nil},
		"the original starts cold at a rate":             {cold, took(2, ms, ms), []string{"it: 1 of 2 claims had a Sandbox of the pool"}},
		"ours starts cold at a rate":                     {took(2, 50*ms, 100*ms), cold, []string{"it: 1 of 2 claims had a Sandbox of the pool"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			beside := Beside{Original: []Result{tc.original}, Ours: []Result{tc.ours}}
			var got []string
			for _, miss := range beside.Misses() {
				got = append(got, miss.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Misses() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSumAddsTheResultsOfTheSameLoads(t *testing.T) {
	one := func() []Result {
		return []Result{{
			Load: "it", PerSecond: 2, Waiting: 3, Latencies: []time.Duration{1}, Took: 2, Adopted: 3, Writes: map[string]int{"create pods": 4},
			Controller: 5, APIServer: 6, Doubles: []error{nil},
		}}
	}
	sum := Sum(Sum(nil, one()), one())
	want := []Result{{
		Load: "it", PerSecond: 2, Waiting: 3, Latencies: []time.Duration{1, 1}, Took: 4, Adopted: 6, Writes: map[string]int{"create pods": 8},
		Controller: 10, APIServer: 12, Doubles: []error{nil, nil},
	}}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("Sum() (-want +got):\n%s", diff)
	}
}

func TestTheTableSaysHowManyTimesAsMuchOursTakes(t *testing.T) {
	original, ours := took(2, 100*time.Millisecond, 200*time.Millisecond), took(2, 10*time.Millisecond, 50*time.Millisecond)
	original.Writes = map[string]int{"patch pods": 4}
	original.Took, original.Controller, original.APIServer = time.Second, 40*time.Millisecond, 80*time.Millisecond
	ours.Took, ours.Controller, ours.APIServer = time.Second, 20*time.Millisecond, 60*time.Millisecond
	beside := Beside{Original: []Result{original}, Ours: []Result{ours}}
	want := `| load | controller | claims | p50 ms | p99 ms | claims/s | writes/cycle | controller CPU ms/cycle | apiserver CPU ms/cycle | served twice |
|---|---|---|---|---|---|---|---|---|---|
| it | original v1 | 2 | 100 | 200 | 2.0 | 2.0 | 20 | 40 | 0 |
| | ours | 2 | 10 | 50 | 2.0 | 1.0 | 10 | 30 | 0 |
| | ours to the original | | 0.10 | 0.25 | | 0.50 | 0.50 | 0.75 | |
`
	if diff := cmp.Diff(want, beside.Table("v1")); diff != "" {
		t.Errorf("Table() (-want +got):\n%s", diff)
	}
}
