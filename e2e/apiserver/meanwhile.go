// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Meanwhile lets something happen once, while a certain write of a client is on its way.
type Meanwhile struct {
	// Method and Path say which write: its verb in HTTP, and how its path ends.
	Method, Path string
	// Happen is what happens.
	Happen func()

	once sync.Once
}

// Wrap watches what goes through a transport; it suits rest.Config.Wrap.
func (m *Meanwhile) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.Method == m.Method && strings.HasSuffix(request.URL.Path, m.Path) {
			m.once.Do(m.Happen)
		}
		return next.RoundTrip(request)
	})
}

// Failing lets certain writes of a client fail before they reach the apiserver.
type Failing struct {
	// Method and Path say which: their verb in HTTP, and how their path ends.
	Method, Path string
	// Code is the answer in HTTP; 0 for an error of the server.
	Code int

	left atomic.Int64
}

// Next lets so many fail from now on.
func (f *Failing) Next(count int64) { f.left.Store(count) }

// Left is how many have yet to fail.
func (f *Failing) Left() int64 { return max(0, f.left.Load()) }

// Wrap disturbs what goes through a transport; it suits rest.Config.Wrap.
func (f *Failing) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.Method == f.Method && strings.HasSuffix(request.URL.Path, f.Path) && f.left.Add(-1) >= 0 {
			return answer(request, cmp.Or(f.Code, http.StatusInternalServerError))
		}
		return next.RoundTrip(request)
	})
}

// Gate holds certain writes of a client back until it is opened, so that all that comes
// meanwhile stands in line.
type Gate struct {
	method, path string

	opened chan struct{}
	held   atomic.Int32
}

// NewGate says which writes: their verb in HTTP, and how their path ends.
func NewGate(method, path string) *Gate {
	return &Gate{method: method, path: path, opened: make(chan struct{})}
}

// Line waits until so many workers are held back and so many objects stand in line for
// one, of which queued tells.
func (g *Gate) Line(e *Environment, workers, waiting int, queued func() int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d workers are busy and %d objects wait", workers, waiting), func() error {
		if held, inLine := int(g.held.Load()), queued(); held != workers || inLine != waiting {
			return fmt.Errorf("%d and %d do", held, inLine)
		}
		return nil
	})
}

// Open lets all through, those that wait and those that come. It is called once.
func (g *Gate) Open() { close(g.opened) }

// Wrap holds back what goes through a transport; it suits rest.Config.Wrap.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.Method == g.method && strings.HasSuffix(request.URL.Path, g.path) {
			g.held.Add(1)
			select {
			case <-g.opened:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		return next.RoundTrip(request)
	})
}

// roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
