// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"
	"sync"
)

// Interruption disturbs one write of a client and no other. Events and leases do not
// count as writes.
type Interruption struct {
	nth   int
	fault fault
	// deadly interruptions are the client's last: nothing of it reaches the apiserver
	// afterwards.
	deadly bool

	mu   sync.Mutex
	seen int
	hit  string
	// heir is true once another client has taken the place of the one that was killed.
	heir bool
}

// Interruptions are all ways to disturb the n-th write of a client, from 1, by what they
// do to it.
func Interruptions(nth int) map[string]*Interruption {
	return map[string]*Interruption{
		"somebody else was faster":   {nth: nth, fault: fault{status: http.StatusConflict}},
		"too many requests":          {nth: nth, fault: fault{status: http.StatusTooManyRequests}},
		"an error before it is done": {nth: nth, fault: fault{status: http.StatusInternalServerError}},
		"an error after it is done":  {nth: nth, fault: fault{status: http.StatusInternalServerError, late: true}},
		"no answer, and not done":    {nth: nth},
		"no answer, and done":        {nth: nth, fault: fault{late: true}},
		"death before it":            {nth: nth, deadly: true},
		"death after it":             {nth: nth, fault: fault{late: true}, deadly: true},
	}
}

// Hit is the write that was disturbed; empty until then.
func (i *Interruption) Hit() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hit
}

// Dead says whether the client was killed.
func (i *Interruption) Dead() bool { return i.deadly && i.Hit() != "" }

// Heir says whether another client has come after one that was killed.
func (i *Interruption) Heir() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.heir
}

// Wrap disturbs what goes through a transport; it suits rest.Config.Wrap. Each transport
// that it wraps after a deadly interruption is that of another client, which lives.
func (i *Interruption) Wrap(next http.RoundTripper) http.RoundTripper {
	dead := i.Dead()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.heir = dead
	return &interrupted{by: i, next: next, reborn: dead}
}

// meets counts a request and says whether it is the one.
func (i *Interruption) meets(request *http.Request) bool {
	if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") || strings.Contains(request.URL.Path, "/leases") {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen++
	if i.seen != i.nth {
		return false
	}
	i.hit = request.Method + " " + request.URL.Path
	return true
}

type interrupted struct {
	by     *Interruption
	next   http.RoundTripper
	reborn bool
}

// RoundTrip implements http.RoundTripper.
func (t *interrupted) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case t.reborn:
		return t.next.RoundTrip(request)
	case t.by.Dead():
		return nil, timeoutError{method: request.Method, path: request.URL.Path}
	case t.by.meets(request):
		return t.by.fault.play(t.next, request)
	default:
		return t.next.RoundTrip(request)
	}
}
