// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock runs with the machine's clock, ahead of it by all jumps, unless it was stopped.
type Clock struct {
	clock.RealClock

	ahead   atomic.Int64
	stopped atomic.Pointer[time.Time]
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	if at := c.stopped.Load(); at != nil {
		return *at
	}
	return c.RealClock.Now().Add(time.Duration(c.ahead.Load()))
}

// Jump moves the clock ahead, whether it runs or stands still.
func (c *Clock) Jump(by time.Duration) {
	if at := c.stopped.Load(); at != nil {
		c.stopped.Store(new(at.Add(by)))
		return
	}
	c.ahead.Add(int64(by))
}

// Halt lets time stand still.
func (c *Clock) Halt() {
	now := c.Now()
	c.stopped.Store(&now)
}

// Resume goes on from where the clock was halted.
func (c *Clock) Resume() {
	if at := c.stopped.Swap(nil); at != nil {
		c.ahead.Store(int64(at.Sub(c.RealClock.Now())))
	}
}
