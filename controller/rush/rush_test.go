// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rush_test

import (
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/rush"
)

// timer is time that goes on when a test says so, and one call that waits for it.
type timer struct {
	at   time.Duration
	due  time.Duration
	call func()
}

func (t *timer) after(wait time.Duration, call func()) { t.due, t.call = t.at+wait, call }

// run lets time pass until nothing waits any more, or until that time.
func (t *timer) run(until time.Duration) {
	for t.call != nil && t.due <= until {
		call := t.call
		t.at, t.call = t.due, nil
		call()
	}
	t.at = until
}

func TestWhatNobodyWaitsForGoesAfterTheClaimsUnderWayAndWaitsASecondAtMost(t *testing.T) {
	const ms = time.Millisecond
	cases := map[string]struct {
		wait time.Duration
		// busy is until when a claim is under way.
		busy, want time.Duration
	}{
		"when no claim is under way":         {wait: 100 * ms, want: 100 * ms},
		"when the last is served meanwhile":  {wait: 100 * ms, busy: 99 * ms, want: 100 * ms},
		"when claims are under way then":     {wait: 100 * ms, busy: 250 * ms, want: 300 * ms},
		"when they go on and on":             {wait: 150 * ms, busy: time.Hour, want: time.Second},
		"when it waits a second in any case": {wait: time.Second, busy: time.Hour, want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := &timer{}
			r := &rush.Rush{AfterFunc: clock.after}
			var called []time.Duration
			if tc.busy > 0 {
				r.Begin()
			}
			r.After(tc.wait, func() { called = append(called, clock.at) })
			clock.run(min(tc.busy, time.Minute))
			if tc.busy > 0 {
				r.End()
			}
			clock.run(time.Minute)
			if len(called) != 1 || called[0] != tc.want {
				t.Errorf("it was called at %v, want once, at %s", called, tc.want)
			}
		})
	}
}

func TestItIsBusyUntilTheLastClaimIsServed(t *testing.T) {
	var r rush.Rush
	r.Begin()
	r.Begin()
	r.End()
	if !r.Busy() {
		t.Error("it is not busy while a claim is under way")
	}
	r.End()
	if r.Busy() {
		t.Error("it is busy with no claim under way")
	}
}
