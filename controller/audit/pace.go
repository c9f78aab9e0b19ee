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
	// debt is the pause that is still to be made.
	debt time.Duration
}

// owe notes that work took so long. Time that others had the CPU counts as work too, so
// that on a busy machine less than the share is taken, never more.
func (p *pacer) owe(work time.Duration) {
	p.debt += time.Duration(float64(work) * (1/p.share - 1))
}

// pause makes the pause that is due.
func (p *pacer) pause(ctx context.Context) error {
	if p.debt < leastPause {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.clock.After(p.debt):
		p.debt = 0
		return nil
	}
}
