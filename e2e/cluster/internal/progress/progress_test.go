// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// lines collects what is written, line by line.
type lines struct {
	mu  sync.Mutex
	all []string
	got chan struct{}
}

func newLines() *lines { return &lines{got: make(chan struct{}, 100)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSuffix(string(p), "\n"))
	l.got <- struct{}{}
	return len(p), nil
}

func TestAStepSaysThatItBeginsThatItStillRunsAndHowLongItTook(t *testing.T) {
	out, clk := newLines(), clocktesting.NewFakeClock(time.Unix(0, 0))
	r := New(out, clk, 3)
	err := r.Step("building etcd", "first time only", func() error {
		<-out.got
		for range 2 {
			clk.Step(heartbeat)
			<-out.got
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"[1/3] building etcd (first time only)",
		"[1/3] still building etcd, 15s so far",
		"[1/3] still building etcd, 30s so far",
		"[1/3] building etcd: done in 30s",
	}
	if diff := cmp.Diff(want, out.all); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestAStepThatFailsSaysSoAndKeepsItsError(t *testing.T) {
	out, clk := newLines(), clocktesting.NewFakeClock(time.Unix(0, 0))
	broken := errors.New("broken")
	if err := New(out, clk, 1).Step("starting", "", func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error: got %v, want %v", err, broken)
	}
	want := []string{"[1/1] starting", "[1/1] starting: failed after 0s"}
	if diff := cmp.Diff(want, out.all); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
