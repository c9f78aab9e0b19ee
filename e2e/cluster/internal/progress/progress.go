// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress tells the person who waits what is being done, how far it
// is and how long it takes.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// heartbeat is how long a step stays silent.
const heartbeat = 15 * time.Second

// Reporter writes one line when a step begins, one every 15 s while it runs and
// one when it ends.
type Reporter struct {
	mu    sync.Mutex
	out   io.Writer
	clock clock.WithTicker
	total int
	done  int
	begun time.Time
}

// New returns a Reporter of total steps that writes to out.
func New(out io.Writer, clk clock.WithTicker, total int) *Reporter {
	return &Reporter{out: out, clock: clk, total: total, begun: clk.Now()}
}

// Step runs one step; name is what is done, such as "building etcd", and note a
// hint about it that may be empty. The step's own error is returned as it is.
func (r *Reporter) Step(name, note string, run func() error) error {
	r.done++
	place := fmt.Sprintf("[%d/%d]", r.done, r.total)
	start := r.clock.Now()
	if note != "" {
		note = " (" + note + ")"
	}
	r.printf("%s %s%s", place, name, note)
	stop := r.beat(place, name, start)
	err := run()
	stop()
	took := Seconds(r.clock.Since(start))
	if err != nil {
		r.printf("%s %s: failed after %s", place, name, took)
		return err
	}
	r.printf("%s %s: done in %s", place, name, took)
	return nil
}

// Elapsed is the time since the Reporter was made.
func (r *Reporter) Elapsed() time.Duration { return r.clock.Since(r.begun) }

// Say writes one line between the steps.
func (r *Reporter) Say(line string) { r.printf("%s", line) }

// beat writes the heartbeat until the returned function is called, which waits
// until the last line is out.
func (r *Reporter) beat(place, name string, start time.Time) func() {
	ticker := r.clock.NewTicker(heartbeat)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			case <-ticker.C():
				r.printf("%s still %s, %s so far", place, name, Seconds(r.clock.Since(start)))
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-ended
	}
}

func (r *Reporter) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// Seconds renders a duration for people: tenths of a second below ten seconds,
// whole seconds above.
func Seconds(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
