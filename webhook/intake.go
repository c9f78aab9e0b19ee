// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// errCrowded is the reason of an answer while the bodies of others fill what is set aside
// for them.
var errCrowded = errors.New("the requests that are being handled fill the memory that is set aside for them, nothing is wrong with this one: try again in a second")

// intake takes in bodies, as many at the same time as have a place in a budget of bytes.
type intake struct {
	clock clock.PassiveClock
	// short has the places of bodies of up to shortBody bytes, long those of all others, so
	// that who announces much and sends nothing keeps out his like only.
	short, long *semaphore.Weighted
	// wait is how long a request waits for its place, patience how long its body may take
	// to arrive from then on.
	wait, patience time.Duration
}

func newIntake(c clock.PassiveClock) *intake {
	return &intake{
		clock: c, wait: waitForPlace, patience: timeToArrive,
		short: semaphore.NewWeighted(shortBodies), long: semaphore.NewWeighted(longBodies),
	}
}

// placeOf is how many bytes a request needs a place for: what it announces, or else the
// most that is read.
func placeOf(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return maxBody
	}
	return r.ContentLength
}

// enter waits for a place, but not for long; leave gives it back.
func (i *intake) enter(ctx context.Context, size int64) (leave func(), err error) {
	places := i.long
	if size <= shortBody {
		places = i.short
	}
	ctx, cancel := context.WithTimeout(ctx, i.wait)
	defer cancel()
	if err := places.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { places.Release(size) }, nil
}

// receive reads a body into a buffer of its size. A sender that is too slow is cut off; then
// the deadline stays, as nobody reads what he still sends.
func (i *intake) receive(w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(i.clock.Now().Add(i.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("set a deadline: %w", err)
	}
	var body bytes.Buffer
	body.Grow(int(size) + bytes.MinRead)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return nil, err
	}
	if err := connection.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("lift the deadline: %w", err)
	}
	return body.Bytes(), nil
}

// refuseCrowd asks a sender to come again. An apiserver does by itself, within the time that
// it gives a webhook.
func refuseCrowd(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	http.Error(w, fmt.Sprintf("%s: %s: %v", us, ruleBusy, errCrowded), http.StatusTooManyRequests)
}
