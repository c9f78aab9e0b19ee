// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
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
			return answer(request, http.StatusInternalServerError)
		}
		return next.RoundTrip(request)
	})
}

// roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
