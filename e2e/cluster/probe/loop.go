// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// loopTimeout is short, so that a packet that is dropped is soon followed by another.
	loopTimeout = 200 * time.Millisecond
	// loopPause keeps refused connections from taking the whole processor.
	loopPause = 5 * time.Millisecond
	// loopRest is the pause after an answer: a target that is open is only watched, and the
	// network has others to serve.
	loopRest = 100 * time.Millisecond
	// loopEnough is after how many attempts on a target, one after the other, a line says
	// that they all failed.
	loopEnough = 5
)

// loop asks every target again and again, from now until it is stopped. It says which
// target it reached, which it only tried, and which it lost after it had reached it.
func loop(ctx context.Context, targets []string, out io.Writer) int {
	lines := &lineWriter{out: out}
	var all sync.WaitGroup
	for _, target := range targets {
		all.Go(func() { hammer(ctx, target, lines) })
	}
	all.Wait()
	return 0
}

// hammered is what is known of a target: the answers are those since it was reached.
type hammered struct {
	target                      string
	attempts, failures, answers int
	open                        bool
}

func hammer(ctx context.Context, target string, out io.Writer) {
	ask, address := askingOf(target)
	for known := (hammered{target: target}); ctx.Err() == nil; {
		_, err := ask(ctx, address, loopTimeout)
		if line := known.after(err); line != "" && ctx.Err() == nil {
			_, _ = fmt.Fprintln(out, line)
		}
		pause := loopPause
		if err == nil {
			pause = loopRest
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause): //nolint:forbidigo // The network keeps real time.
		}
	}
}

// after counts an attempt that ended so, and is the line about it; empty if there is
// nothing new.
func (h *hammered) after(err error) string {
	h.attempts++
	if err == nil {
		h.failures = 0
		h.answers++
		if h.open {
			return ""
		}
		h.open, h.answers = true, 1
		return fmt.Sprintf("reached %s at attempt %d", h.target, h.attempts)
	}
	h.failures++
	switch {
	case h.failures != loopEnough:
		return ""
	case h.open:
		h.open = false
		return fmt.Sprintf("lost %s at attempt %d after %d answers", h.target, h.attempts, h.answers)
	default:
		return fmt.Sprintf("tried %s: %d attempts failed", h.target, h.attempts)
	}
}

// lineWriter keeps lines whole.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}
