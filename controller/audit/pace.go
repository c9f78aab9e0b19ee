// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// leastPause is how long a pause is at least: shorter ones are saved up.
const leastPause = 20 * time.Millisecond

// pacer keeps work to a share of one CPU by a pause after each piece.
type pacer struct {
	clock clock.Clock
	// share of one CPU, above 0 and at most 1.
	share float64
	// worked is told of all work; nil for nobody.
	worked func(time.Duration)
	// since is when the work began that is not paid for, and debt the pause that is still
	// to be made for the rest.
	since time.Time
	debt  time.Duration
}

// begin notes that work begins.
func (p *pacer) begin() { p.since = p.clock.Now() }

// pause makes the pause that is due for the work since it began, or since the last pause.
// Time that others had the CPU counts as work too, so that on a busy machine less than the
// share is taken, never more.
func (p *pacer) pause(ctx context.Context) error {
	now := p.clock.Now()
	work := now.Sub(p.since)
	p.since = now
	p.debt += time.Duration(float64(work) * (1/p.share - 1))
	if p.worked != nil {
		p.worked(work)
	}
	if p.debt < leastPause {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.clock.After(p.debt):
		p.debt, p.since = 0, p.clock.Now()
		return nil
	}
}
