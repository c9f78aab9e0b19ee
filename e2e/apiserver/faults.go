// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Faults disturbs the requests of a client by a plan that a seed fixes: before or
// after a request has reached the apiserver, it answers that somebody else was
// faster (409), that there were too many requests (429), that the server failed (500)
// or nothing at all. Watches and the discovery of kinds are left alone.
type Faults struct {
	mu     sync.Mutex
	random *rand.Rand
	rate   float64
	count  int
	// belated is how long after its answer a request is carried out at most; 0 for none that is.
	belated time.Duration
	under   sync.WaitGroup
}

// NewFaults plans faults for the given part of the requests, between 0 and 1.
func NewFaults(seed uint64, rate float64) *Faults {
	return &Faults{random: rand.New(rand.NewPCG(seed, seed)), rate: rate} //nolint:gosec // The plan must be repeatable.
}

// Belate lets some of the writes from now on be carried out after they were not answered, each
// within that time: they were still on their way in the apiserver.
//
// Some things nobody can promise then, and tests that use it leave them out: a process that
// takes over does not know what the one before it has sent; and what was made by a repetition
// and deleted at once can come again by the first request.
func (f *Faults) Belate(within time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.belated = within
}

// Stop lets all further requests through.
func (f *Faults) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = 0
}

// Settle waits until what was to be carried out late has been.
func (f *Faults) Settle() { f.under.Wait() }

// Count is how many requests were disturbed.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// Wrap disturbs what goes through a transport; it suits rest.Config.Wrap.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper {
	return &disturbed{faults: f, next: next}
}

// fault is one disturbance.
type fault struct {
	// status is the answer; 0 for none at all.
	status int
	// late faults come after the apiserver has done what it was asked for.
	late bool
	// belated is how long after the fault the apiserver does it; 0 for never.
	belated time.Duration
}

// draw decides about one request.
func (f *Faults) draw(method string) (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.Float64() >= f.rate {
		return fault{}, false
	}
	f.count++
	choices := []fault{
		{status: http.StatusTooManyRequests}, {status: http.StatusInternalServerError}, {},
		{status: http.StatusInternalServerError, late: true}, {late: true},
	}
	if method != http.MethodGet {
		choices = append(choices, fault{status: http.StatusConflict})
		if f.belated > 0 {
			choices = append(choices, fault{belated: 1 + time.Duration(f.random.Float64()*float64(f.belated))})
		}
	}
	drawn := choices[f.random.IntN(len(choices))]
	if drawn.belated > 0 {
		f.under.Add(1) // here, so that Settle after Stop waits for it
	}
	return drawn, true
}

// disturbed is a transport with faults.
type disturbed struct {
	faults *Faults
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d *disturbed) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" || isDiscovery(request.URL.Path) {
		return d.next.RoundTrip(request)
	}
	fault, hit := d.faults.draw(request.Method)
	if !hit {
		return d.next.RoundTrip(request)
	}
	if fault.belated > 0 {
		if err := d.carryOutLate(request, fault.belated); err != nil {
			d.faults.under.Done()
			return nil, err
		}
	}
	return fault.play(d.next, request)
}

// carryOutLate sends a request after that time, whether anybody still waits for it or not.
func (d *disturbed) carryOutLate(request *http.Request, after time.Duration) error {
	body := []byte(nil)
	if request.Body != nil {
		read, err := io.ReadAll(request.Body)
		if err = errors.Join(err, request.Body.Close()); err != nil {
			return err
		}
		body = read
	}
	sent := request.Clone(context.WithoutCancel(request.Context()))
	sent.Body = io.NopCloser(bytes.NewReader(body))
	go func() {
		defer d.faults.under.Done()
		<-clock.RealClock{}.After(after)
		if response, err := d.next.RoundTrip(sent); err == nil {
			_ = response.Body.Close() // nobody reads it
		}
	}()
	return nil
}

// play lets a request come to grief.
func (f fault) play(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if f.late {
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
	}
	if f.status == 0 {
		return nil, timeoutError{method: request.Method, path: request.URL.Path}
	}
	return answer(request, f.status)
}

// isDiscovery says whether a request asks which kinds there are. A controller that is
// not told ends, and is started again by somebody else.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
}

// timeoutError is what a client sees of a server that does not answer.
type timeoutError struct{ method, path string }

// Error says what was not answered.
func (e timeoutError) Error() string {
	return fmt.Sprintf("injected: no answer to %s %s in time", e.method, e.path)
}

// Timeout implements net.Error.
func (timeoutError) Timeout() bool { return true }

// Temporary implements net.Error.
func (timeoutError) Temporary() bool { return true }

func answer(request *http.Request, code int) (*http.Response, error) {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden:           metav1.StatusReasonForbidden,
		http.StatusConflict:            metav1.StatusReasonConflict,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], //nolint:gosec // HTTP codes are small.
		Message: "injected: " + http.StatusText(code),
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: request, ContentLength: int64(len(body)),
	}, nil
}
