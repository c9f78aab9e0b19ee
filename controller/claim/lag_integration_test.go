// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lag delays what the controller's watches deliver, each watch by times of its own,
// and breaks them off now and then, so that its caches are behind the truth and behind
// one another.
type lag struct {
	mu     sync.Mutex
	random *rand.Rand
	// most is the longest delay.
	most time.Duration
	// breaks is how likely an event is the last of its watch.
	breaks float64
}

func newLag(seed uint64, most time.Duration, breaks float64) *lag {
	return &lag{random: rand.New(rand.NewPCG(seed, seed)), most: most, breaks: breaks}
}

// stop lets further events through at once.
func (l *lag) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.breaks = 0, 0
}

// draw decides about one event.
func (l *lag) draw() (delay time.Duration, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most == 0 {
		return 0, false
	}
	return time.Duration(l.random.Float64() * float64(l.most)), l.random.Float64() < l.breaks
}

// wrap suits rest.Config.Wrap.
func (l *lag) wrap(next http.RoundTripper) http.RoundTripper { return &lagging{lag: l, next: next} }

type lagging struct {
	lag  *lag
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *lagging) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || request.URL.Query().Get("watch") != "true" || response.StatusCode != http.StatusOK {
		return response, err
	}
	reader, writer := io.Pipe()
	source := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{reader, closers{source, reader}}
	go t.lag.forward(source, writer)
	return response, nil
}

// forward hands on one event after the other, late. JSON events end in a line break.
func (l *lag) forward(from io.ReadCloser, to *io.PipeWriter) {
	events := make(chan late, 10_000)
	go l.receive(from, events)
	var failure error
	for event := range events {
		if wait := event.due.Sub(clock.RealClock{}.Now()); wait > 0 {
			<-clock.RealClock{}.After(wait)
		}
		if _, failure = to.Write(event.line); failure != nil || event.last {
			break
		}
	}
	_ = to.CloseWithError(errors.Join(failure, io.EOF))
	_ = from.Close()
	for range events {
		continue // what comes after the break is lost
	}
}

// late is an event and when it is handed on.
type late struct {
	line []byte
	due  time.Time
	last bool
}

func (l *lag) receive(from io.Reader, events chan<- late) {
	defer close(events)
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		delay, last := l.draw()
		events <- late{line: line, due: clock.RealClock{}.Now().Add(delay), last: last}
	}
}

type closers []io.Closer

// Close implements io.Closer.
func (c closers) Close() error {
	var errs []error
	for _, closer := range c {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}
