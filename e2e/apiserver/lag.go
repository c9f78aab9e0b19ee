// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

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

// Lag delays what the watches of a client deliver, each by times of its own, and
// breaks them off now and then, so that caches are behind the truth and behind one
// another. Nothing else is disturbed.
type Lag struct {
	mu     sync.Mutex
	random *rand.Rand
	most   time.Duration
	breaks float64
	active bool
}

// NewLag plans delays of up to most, mostly much shorter. Each event is the last of
// its watch with the given probability. All of that from Begin on: a cache that is
// filled by a watch would take minutes.
func NewLag(seed uint64, most time.Duration, breaks float64) *Lag {
	return &Lag{random: rand.New(rand.NewPCG(seed, seed)), most: most, breaks: breaks} //nolint:gosec // The plan must be repeatable.
}

// Begin delays all further events.
func (l *Lag) Begin() { l.set(true) }

// Stop lets all further events through at once.
func (l *Lag) Stop() { l.set(false) }

func (l *Lag) set(active bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = active
}

// draw decides about one event.
func (l *Lag) draw() (delay time.Duration, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.active {
		return 0, false
	}
	part := l.random.Float64()
	return time.Duration(part * part * part * float64(l.most)), l.random.Float64() < l.breaks
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
	if err != nil || request.URL.Query().Get("watch") != "true" || response.StatusCode != http.StatusOK {
		return response, err
	}
	reader, writer := io.Pipe()
	source := response.Body
	response.Body = delayed{Reader: reader, ends: []io.Closer{source, reader}}
	go t.lag.forward(source, writer)
	return response, nil
}

// forward hands on one event after the other, late. An event in JSON ends with its
// line.
func (l *Lag) forward(from io.ReadCloser, to *io.PipeWriter) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		delay, last := l.draw()
		if delay > 0 {
			<-clock.RealClock{}.After(delay)
		}
		if _, failure := to.Write(line); failure != nil || err != nil || last {
			_ = to.CloseWithError(errors.Join(err, failure, io.EOF)) // a pipe always closes
			_ = from.Close()                                         // nobody reads on
			return
		}
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
