// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// Verdict is what became of one request that the story knows the right answer to.
type Verdict int

const (
	// Right is the answer that the request deserves.
	Right Verdict = iota
	// Unchecked was stored although nobody judged or hardened it.
	Unchecked
	// Wrong is a refusal that the request does not deserve, or no answer.
	Wrong
)

// Attempt is one request of a Load.
type Attempt struct {
	// Begin and End are when it was sent and answered.
	Begin, End time.Time
	// Verdict is what became of it, Why says it in words if it is not Right.
	Verdict Verdict
	Why     string
}

// Load sends requests at a pace while something happens: one is due each Interval, however
// long the others take to be answered. What is due while Askers are without an answer is
// sent as soon as one has it, and what is due when the happening ends is sent before the
// load does, so that as many are sent as the pace demands.
type Load struct {
	// Interval lies between two requests that are due.
	Interval time.Duration
	// Askers is how many requests may be without an answer at the same time.
	Askers int
	// Patience is how long the load goes on after the happening until all that is due by
	// then was sent. A machine that does not get there is too slow for the pace.
	Patience time.Duration
	// Ask sends request number i and says what became of it.
	Ask func(ctx context.Context, i int) (Verdict, string)
}

// Report is what became of the requests of a Load.
type Report struct {
	// Due is how many requests the pace demands of the time that the load took, which is Took.
	Due  int
	Took time.Duration
	// Attempts are the requests in the order of their answers.
	Attempts []Attempt
}

// During sends requests from before something happens until after it has.
func (l Load) During(ctx context.Context, t *testing.T, happens func()) *Report {
	t.Helper()
	ctx = context.WithoutCancel(ctx)
	p := pacer{clock: clock.RealClock{}, interval: l.Interval, stop: make(chan struct{})}
	p.begin = p.clock.Now()
	report := &Report{}
	var askers sync.WaitGroup
	for range l.Askers {
		askers.Go(func() {
			for i, due := p.next(); due; i, due = p.next() {
				begin := p.clock.Now()
				verdict, why := l.Ask(ctx, i)
				p.note(report, Attempt{Begin: begin, End: p.clock.Now(), Verdict: verdict, Why: why})
			}
		})
	}
	// A story that gives up must not leave them asking.
	defer askers.Wait()
	defer close(p.stop)
	happens()
	report.Took, report.Due = p.catchUp(l.Patience)
	return report
}

// pacer says when which request is due.
type pacer struct {
	clock    clock.Clock
	interval time.Duration
	begin    time.Time
	stop     chan struct{}

	mu sync.Mutex
	// taken is how many requests are spoken for, sent how many were due and are on their way.
	taken, sent int
}

// next waits until the next request is due; it is not when the load ends before.
func (p *pacer) next() (number int, due bool) {
	p.mu.Lock()
	number = p.taken
	p.taken++
	p.mu.Unlock()
	if early := p.begin.Add(time.Duration(number) * p.interval).Sub(p.clock.Now()); early > 0 {
		select {
		case <-p.stop:
		case <-p.clock.After(early):
		}
	}
	select {
	case <-p.stop:
		return number, false
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	return number, true
}

// catchUp waits until all that is due was sent, and says how long the load took by then and
// how many requests were due.
func (p *pacer) catchUp(patience time.Duration) (took time.Duration, due int) {
	for begin := p.clock.Now(); ; p.clock.Sleep(p.interval) {
		took = p.clock.Since(p.begin)
		due = int(took/p.interval) + 1
		p.mu.Lock()
		behind := p.sent < due
		p.mu.Unlock()
		if !behind || p.clock.Since(begin) > patience {
			return took, due
		}
	}
}

func (p *pacer) note(r *Report, a Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Attempts = append(r.Attempts, a)
}

// Slow says so when fewer requests were sent than were due: then what happened did not
// happen under the load that was meant.
func (r *Report) Slow() error {
	if len(r.Attempts) >= r.Due {
		return nil
	}
	return fmt.Errorf("this machine sent only %d of the %d requests that were due in %s", len(r.Attempts), r.Due, r.Took.Round(time.Second))
}

// With are the attempts that got a verdict.
func (r *Report) With(v Verdict) []Attempt {
	var found []Attempt
	for _, a := range r.Attempts {
		if a.Verdict == v {
			found = append(found, a)
		}
	}
	return found
}

// String counts the attempts.
func (r *Report) String() string {
	return fmt.Sprintf("%d requests in %s, %d were due: %d got the answer they deserve, %d were admitted unchecked, %d refused in error",
		len(r.Attempts), r.Took.Round(time.Second), r.Due, len(r.With(Right)), len(r.With(Unchecked)), len(r.With(Wrong)))
}
