// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExcesses(t *testing.T) {
	result := func(perSecond int, latency time.Duration, writes, waiting int) Result {
		return Result{
			Load: "it", PerSecond: perSecond, Waiting: waiting,
			Latencies: []time.Duration{latency, latency}, Writes: map[string]int{"create pods": 2, "patch pods": writes - 2},
		}
	}
	cases := map[string]struct {
		results []Result
		want    []string
	}{
		"as it should be": {[]Result{result(2, time.Second, 18, 2), result(10, 6*time.Second, 18, 10)}, nil},
		"a write more": {[]Result{result(0, time.Second, 19, 2)}, []string{"it: 2 claims cost 19 writes, which is more than 9 each:\n" +
			"| write | a cycle |\n|---|---|\n| create pods | 1.00 |\n| patch pods | 8.50 |\n"}},
		"claims that queue up": {
			[]Result{result(10, time.Second, 18, 11)}, []string{"it: 11 claims waited at once, which is more than come in a second"},
		},
		"those that are only recorded": {[]Result{result(20, time.Second, 18, 100), result(0, time.Second, 18, 200)}, nil},
		"slower the more there are": {
			[]Result{result(2, 10*time.Millisecond, 18, 1), result(10, 61*time.Millisecond, 18, 1)},
			[]string{"at 10 claims/s half of them took up to 61ms, which is more than 6 times the 10ms at 2 claims/s"},
		},
		"one rate alone is compared with nothing": {[]Result{result(10, time.Hour, 18, 1)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, excess := range Excesses(tc.results) {
				got = append(got, excess.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Excesses() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMostWaiting(t *testing.T) {
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	cases := map[string]struct {
		asked, served []time.Time
		want          int
	}{
		"nobody":                        {nil, nil, 0},
		"one after the other":           {at(1, 3, 5), at(2, 4, 6), 1},
		"one comes as another goes":     {at(1, 2, 3), at(2, 3, 4), 1},
		"all at once":                   {at(1, 1, 1), at(2, 3, 4), 3},
		"two, while the first is late":  {at(1, 2, 4), at(9, 3, 5), 2},
		"they are served in any order":  {at(1, 2, 3), at(6, 5, 4), 3},
		"the worst may be in the midst": {at(1, 2, 3, 4, 8), at(5, 5, 5, 5, 9), 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := MostWaiting(tc.asked, tc.served); got != tc.want {
				t.Errorf("MostWaiting() = %d, want %d", got, tc.want)
			}
		})
	}
}

// A claim is to be Ready after two writes, so that none before the one that takes its Sandbox
// may be overlooked.
func TestThePathOfAClaimBeginsWithTheFirstWriteForIt(t *testing.T) {
	cases := map[string]struct{ writes, want []string }{
		"what its pool did before is not the claim's": {
			[]string{"create sandboxes", "create pods", "patch sandboxes/status", "patch sandboxes", "patch sandboxclaims/status"},
			[]string{"patch sandboxes", "patch sandboxclaims/status"},
		},
		"what is written to it before is": {
			[]string{"create sandboxes", "patch sandboxclaims", "patch sandboxes"}, []string{"patch sandboxclaims", "patch sandboxes"},
		},
		"a status before as well": {
			[]string{"patch sandboxclaims/status", "patch sandboxes"}, []string{"patch sandboxclaims/status", "patch sandboxes"},
		},
		"of what its pool did alone there is none": {[]string{"create sandboxes", "patch sandboxes/status"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Path(tc.writes)); diff != "" {
				t.Errorf("the path (-want +got):\n%s", diff)
			}
		})
	}
}
