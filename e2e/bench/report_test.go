// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	upTo := func(n int) (latencies []time.Duration) {
		for i := n; i > 0; i-- {
			latencies = append(latencies, time.Duration(i)*time.Millisecond)
		}
		return latencies
	}
	cases := map[string]struct {
		latencies []time.Duration
		percent   int
		want      time.Duration
	}{
		"the middle of a hundred":         {upTo(100), 50, 50 * time.Millisecond},
		"the last but one of a hundred":   {upTo(100), 99, 99 * time.Millisecond},
		"the worst of thirty":             {upTo(30), 99, 30 * time.Millisecond},
		"one alone":                       {upTo(1), 50, time.Millisecond},
		"nothing was measured":            {nil, 50, 0},
		"the upper middle of an odd many": {upTo(3), 50, 2 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Result{Latencies: tc.latencies}
			if got := result.Percentile(tc.percent); got != tc.want {
				t.Errorf("Percentile(%d) = %v, want %v", tc.percent, got, tc.want)
			}
		})
	}
}

func TestTheTableDividesByTheClaims(t *testing.T) {
	got := Table([]Result{{
		Load: "2 claims/s", Latencies: []time.Duration{20 * time.Millisecond, 10 * time.Millisecond}, Took: time.Second,
		Writes: map[string]int{"create pods": 2, "patch sandboxclaims": 15}, Controller: 30 * time.Millisecond, APIServer: 90 * time.Millisecond, Doubles: []error{errors.New("two")},
	}})
	want := `| load | claims | p50 ms | p99 ms | claims/s | writes/cycle | controller CPU ms/cycle | apiserver CPU ms/cycle | served twice |
|---|---|---|---|---|---|---|---|---|
| 2 claims/s | 2 | 10 | 20 | 2.0 | 8.5 | 15 | 45 | 1 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Table() (-want +got):\n%s", diff)
	}
}

func TestTheBreakdownSaysWhatACycleWrote(t *testing.T) {
	result := Result{Latencies: make([]time.Duration, 4), Writes: map[string]int{"patch sandboxes": 4, "create pods": 5}}
	want := "| write | a cycle |\n|---|---|\n| create pods | 1.25 |\n| patch sandboxes | 1.00 |\n"
	if diff := cmp.Diff(want, Breakdown(&result)); diff != "" {
		t.Errorf("Breakdown() (-want +got):\n%s", diff)
	}
}

func TestThePhasesSayAtWhichPace(t *testing.T) {
	got := PhaseTable([]Phase{{What: "SIGKILL", Took: 2 * time.Second, Due: 101, Sent: 104, Refused: 3, UnderWay: 2}})
	want := `| meanwhile | seconds | requests due | sent | a second | admitted unchecked | refused in error | of those under way |
|---|---|---|---|---|---|---|---|
| SIGKILL | 2 | 101 | 104 | 52.0 | 0 | 3 | 2 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PhaseTable() (-want +got):\n%s", diff)
	}
}

func TestReplaceChangesOneSectionAndNothingElse(t *testing.T) {
	const document = "# Top\n<!-- begin: one -->\nold\n<!-- end: one -->\nrest\n<!-- begin: two -->\n<!-- end: two -->\n"
	cases := map[string]struct{ section, want string }{
		"a section that has a text":   {"one", "# Top\n<!-- begin: one -->\nnew\n<!-- end: one -->\nrest\n<!-- begin: two -->\n<!-- end: two -->\n"},
		"an empty section":            {"two", "# Top\n<!-- begin: one -->\nold\n<!-- end: one -->\nrest\n<!-- begin: two -->\nnew\n<!-- end: two -->\n"},
		"a section that is not there": {"three", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Replace(document, tc.section, "new\n")
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.want == "") {
				t.Errorf("Replace() = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
