// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// loopTimeout is short, so that a packet that is dropped is soon followed by another.
	loopTimeout = 200 * time.Millisecond
	// loopPause keeps refused connections from taking the whole processor.
	loopPause = 5 * time.Millisecond
	// loopEnough is after how many attempts on a target a line says that they all failed.
	loopEnough = 5
)

// loop connects to every target again and again, from now until it is stopped. It says
// which target it reached, and for each of the others that it tried.
func loop(ctx context.Context, targets []string, out io.Writer) int {
	lines := &lineWriter{out: out}
	var all sync.WaitGroup
	for _, target := range targets {
		all.Go(func() { hammer(ctx, target, lines) })
	}
	all.Wait()
	return 0
}

func hammer(ctx context.Context, target string, out io.Writer) {
	dialer := net.Dialer{Timeout: loopTimeout}
	for attempt := 1; ctx.Err() == nil; attempt++ {
		conn, err := dialer.DialContext(ctx, "tcp", target)
		if err == nil {
			_ = conn.Close()
			_, _ = fmt.Fprintf(out, "reached %s at attempt %d\n", target, attempt)
			return
		}
		if attempt == loopEnough {
			_, _ = fmt.Fprintf(out, "tried %s: %v\n", target, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(loopPause): //nolint:forbidigo // The network keeps real time.
		}
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
