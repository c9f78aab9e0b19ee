// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// fewRenewals is how many renewals of the Lease the one that stands by may take to notice.
// It looks for it about as often as the leader renews it.
const fewRenewals = 4

const (
	// leaseLasts is how long the Lease of a leader that is silent lasts.
	leaseLasts = 5 * time.Second
	// leaderEnds is when a leader that cannot renew its Lease has ended.
	leaderEnds = 3500 * time.Millisecond
)

// A leader ends in the middle of a burst, by force or when it is told to, and the one
// that stood by goes on: no claim is lost and none is served twice. The Lease of one that
// was killed runs out first; one that is told to end gives it back.
func TestALeaderThatEndsInABurstIsReplaced(t *testing.T) {
	const claims, replicas = 100, 50
	cases := map[string]struct {
		end func(*apiserver.Process) error
		// runsOut is how long the Lease of the first lasts.
		runsOut time.Duration
	}{
		"killed":      {(*apiserver.Process).Kill, leaseLasts},
		"told to end": {(*apiserver.Process).Stop, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			leases := e.chronicle()
			first := e.launch("first")
			e.fill(replicas, first)
			second := e.launch("second")
			witness := e.Witness()
			var clients errgroup.Group
			for i := range claims {
				claim := makeClaim(fmt.Sprintf("claim-%d", i))
				claim.Namespace = e.Namespace
				clients.Go(func() error { return e.Client.Create(e.Context(), claim) })
			}
			e.Eventually("the burst is under way", func() error {
				if got := witness.Served(); got < claims/10 {
					return fmt.Errorf("%d claims have a Sandbox", got)
				}
				return nil
			})
			leader := leases.current()
			if err := tc.end(first.Process); err != nil {
				t.Fatal(err)
			}
			inTime := witness.Served()
			if err := clients.Wait(); err != nil {
				t.Fatal(err)
			}
			e.served(claims, second)
			e.full(replicas, second)
			if doubles := witness.Doubles(); len(doubles) > 0 {
				t.Error(errors.Join(doubles...))
			}
			e.oneEach(claims, replicas)
			if inTime == claims {
				t.Error("all claims were served before the leader ended")
			}
			t.Logf("%d of %d claims had a Sandbox before", inTime, claims)
			leases.holdSuccession(t, leader, tc.runsOut)
		})
	}
}

// holdSuccession fails the test unless another led in time after the leader of a reign.
func (c *chronicle) holdSuccession(t *testing.T, leader int, runsOut time.Duration) {
	t.Helper()
	reigns, slowest := c.told()
	if runsOut == 0 {
		leader++ // the reign of nobody
	}
	if len(reigns) < leader+2 || leader < 0 || (reigns[leader].holder == "") != (runsOut == 0) || reigns[leader+1].holder == "" {
		t.Fatalf("the Lease was held by %+v, and number %d should have been followed", reigns, leader)
	}
	first, next := reigns[leader], reigns[leader+1]
	gap := next.began.Sub(first.last)
	t.Logf("another led %s after the last sign of the first; the slowest renewal took %s", gap, slowest)
	if most := runsOut + fewRenewals*slowest; gap > most {
		t.Errorf("another led after %s, want %s at most", gap, most)
	}
	if runsOut > 0 && gap < leaderEnds {
		t.Errorf("another led after %s, when the first, had it only lost its connection, might still have led for %s", gap, leaderEnds-gap)
	}
}

// oneEach fails the test unless each claim names the one Sandbox that it controls, and
// there are no Sandboxes besides those and the pool's.
func (e *environment) oneEach(claims, members int) {
	e.Helper()
	owned := map[types.UID]string{}
	sandboxes := e.sandboxes()
	for i := range sandboxes {
		if owner := relations.Claim(&sandboxes[i]); owner != nil {
			owned[owner.UID] = sandboxes[i].Name
		}
	}
	for _, claim := range e.claims() {
		if owned[claim.UID] != claim.Status.SandboxStatus.Name {
			e.Errorf("claim %s names Sandbox %q and controls %q", claim.Name, claim.Status.SandboxStatus.Name, owned[claim.UID])
		}
	}
	if len(sandboxes) != claims+members {
		e.Errorf("there are %d Sandboxes, want %d", len(sandboxes), claims+members)
	}
}
