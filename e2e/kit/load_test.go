// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// However long some requests take, as many are sent as are due.
func TestAsManyRequestsAreSentAsAreDue(t *testing.T) {
	var sent atomic.Int64
	release, enough := make(chan struct{}), make(chan struct{})
	load := Load{Interval: time.Millisecond, Askers: 4, Patience: time.Hour, Ask: func(_ context.Context, i int) (Verdict, string) {
		if i < 3 {
			<-release
		}
		if sent.Add(1) == 50 {
			close(enough)
		}
		return Right, ""
	}}
	report := load.During(t.Context(), t, func() {
		<-enough
		close(release)
	})
	if err := report.Slow(); err != nil || report.Due < 50 || len(report.With(Right)) != len(report.Attempts) {
		t.Errorf("%s, %v", report, err)
	}
}

// A machine that does not send what is due gets some time to do so, and is told of then.
func TestAMachineThatIsTooSlowIsToldOf(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	p := pacer{clock: clock, interval: time.Second, begin: clock.Now(), stop: make(chan struct{})}
	for want := range 3 {
		if got, due := p.next(); got != want || !due {
			t.Fatalf("request %d, due %t, want request %d", got, due, want)
		}
		clock.Step(time.Second)
	}
	if took, due := p.catchUp(time.Minute); took != 63*time.Second+time.Second || due != 65 {
		t.Errorf("after %s %d requests are due, want a minute more, and one each second", took, due)
	}
	report := &Report{Due: 4, Attempts: make([]Attempt, 3)}
	if report.Slow() == nil {
		t.Errorf("%s is as many as were due", report)
	}
	p.sent = 66
	if took, due := p.catchUp(time.Minute); took != 64*time.Second || due != 65 {
		t.Errorf("after %s %d requests are due, want no second more", took, due)
	}
	close(p.stop)
	if _, due := p.next(); due {
		t.Error("a request is due after the end")
	}
}
