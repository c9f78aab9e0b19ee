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

// Load sends requests while something happens: one each Interval, but never more than
// Askers at once, so that a machine that is slow is not buried under them.
type Load struct {
	// Interval lies between two requests.
	Interval time.Duration
	// Askers is how many requests may be without an answer at the same time.
	Askers int
	// Ask sends request number i and says what became of it.
	Ask func(ctx context.Context, i int) (Verdict, string)
}

// Report is what became of the requests of a Load.
type Report struct {
	mu sync.Mutex
	// interval lies between two requests that are due.
	interval time.Duration
	// Attempts are the requests in the order of their answers.
	Attempts []Attempt
}

// During sends requests from before something happens until after it has.
func (l Load) During(ctx context.Context, t *testing.T, happens func()) *Report {
	t.Helper()
	ctx = context.WithoutCancel(ctx)
	c := clock.RealClock{}
	ticker := c.NewTicker(l.Interval)
	defer ticker.Stop()
	report := Report{interval: l.Interval}
	var askers sync.WaitGroup
	var next int
	stop := make(chan struct{})
	for range l.Askers {
		askers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-ticker.C():
				}
				report.mu.Lock()
				i := next
				next++
				report.mu.Unlock()
				begin := c.Now()
				verdict, why := l.Ask(ctx, i)
				report.add(Attempt{Begin: begin, End: c.Now(), Verdict: verdict, Why: why})
			}
		})
	}
	// A story that gives up must not leave them asking.
	defer askers.Wait()
	defer close(stop)
	happens()
	return &report
}

func (r *Report) add(a Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Attempts = append(r.Attempts, a)
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
	if len(r.Attempts) == 0 {
		return "no request"
	}
	took := r.Attempts[len(r.Attempts)-1].End.Sub(r.Attempts[0].Begin)
	return fmt.Sprintf("%d requests in %s, %.0f %% of those that were due: %d got the answer they deserve, %d were admitted unchecked, %d refused in error",
		len(r.Attempts), took.Round(time.Second), 100*float64(len(r.Attempts))/(float64(took/r.interval)+1),
		len(r.With(Right)), len(r.With(Unchecked)), len(r.With(Wrong)))
}
