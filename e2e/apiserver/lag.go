// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Lag delays what the watches of a client deliver, each by times of its own, and
// breaks them off now and then, so that caches are behind the truth and behind one
// another. Nothing else is disturbed.
type Lag struct {
	most   time.Duration
	breaks float64
	// resources are those whose watches are late; nil for all.
	resources []string

	mu     sync.Mutex
	random *rand.Rand
	begun  bool
}

// NewLag plans delays of up to most, counted from when an event came. Each event is
// the last of its watch with the given probability; what came after it is lost to that
// watch. Nothing is late before Begin.
func NewLag(seed uint64, most time.Duration, breaks float64) *Lag {
	return &Lag{random: rand.New(rand.NewPCG(seed, seed)), most: most, breaks: breaks} //nolint:gosec // The plan must be repeatable.
}

// Of lets only the watches of those resources be late, so that a test knows what the
// caches lack. It returns the Lag, and must come before the controllers start.
func (l *Lag) Of(resources ...string) *Lag {
	l.resources = resources
	return l
}

// concerns says whether what answers a request may be late.
func (l *Lag) concerns(request *http.Request) bool {
	return request.URL.Query().Get("watch") == "true" && (l.resources == nil || slices.Contains(l.resources, path.Base(request.URL.Path)))
}

// Begin lets events be late from now on. Controllers that are started before fill their
// caches at once, of which nobody learns anything while there is nothing to be seen.
func (l *Lag) Begin() { l.set(true) }

// Stop lets further events through at once.
func (l *Lag) Stop() { l.set(false) }

func (l *Lag) set(begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = begun
}

// draw decides about one event.
func (l *Lag) draw() (delay time.Duration, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return 0, false
	}
	return time.Duration(l.random.Float64() * float64(l.most)), l.random.Float64() < l.breaks
}

// Wrap delays what goes through a transport; it suits rest.Config.Wrap.
func (l *Lag) Wrap(next http.RoundTripper) http.RoundTripper { return &lagging{lag: l, next: next} }

type lagging struct {
	lag  *Lag
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *lagging) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || !t.lag.concerns(request) || response.StatusCode != http.StatusOK {
		return response, err
	}
	reader, writer := io.Pipe()
	source := response.Body
	response.Body = delayed{Reader: reader, ends: []io.Closer{source, reader}}
	go t.lag.forward(request.Context(), source, writer)
	return response, nil
}

// window is how many events of a watch may be on their way.
const window = 10_000

// late is an event and when it is handed on.
type late struct {
	line []byte
	due  time.Time
	last bool
}

// forward hands on one event after the other, late.
func (l *Lag) forward(ctx context.Context, from io.ReadCloser, to *io.PipeWriter) {
	events := make(chan late, window)
	go l.receive(from, events)
	var failure error
	for event := range events {
		select {
		case <-clock.RealClock{}.After(event.due.Sub(clock.RealClock{}.Now())):
			_, failure = to.Write(event.line)
		case <-ctx.Done(): // nobody watches any more
			failure = ctx.Err()
		}
		if failure != nil || event.last {
			break
		}
	}
	_ = to.CloseWithError(errors.Join(failure, io.EOF)) // a pipe always closes
	_ = from.Close()                                    // nobody reads on
	for range events {
		continue // what came after the break is lost
	}
}

// receive reads events until the watch ends. An event in JSON ends with its line.
func (l *Lag) receive(from io.Reader, events chan<- late) {
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

// delayed is the body of a watch and what its end closes.
type delayed struct {
	io.Reader
	ends []io.Closer
}

// Close implements io.Closer.
func (d delayed) Close() error {
	var errs []error
	for _, end := range d.ends {
		errs = append(errs, end.Close())
	}
	return errors.Join(errs...)
}
