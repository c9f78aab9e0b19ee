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
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// leaseLasts is how long the Lease of a leader that is silent lasts.
	leaseLasts = 5 * time.Second
	// promised is how long it takes at most until another leads, once the Lease is free.
	promised = 2 * time.Second
	// renewed is how often a leader renews its Lease, and leaderEnds when one that cannot
	// has ended.
	renewed    = 400 * time.Millisecond
	leaderEnds = 3400 * time.Millisecond
)

// A leader ends in the middle of a burst, by force or when it is told to, and the one
// that stood by goes on: no claim is lost and none is served twice. The Lease of one that
// was killed runs out first; one that is told to end gives it back.
//
// 2026-11-30: What is promised are two seconds after a leader that is told to end, and two
// more than the Lease lasts after one that is killed. That the configuration keeps it is a
// matter of arithmetic and tested where the configuration is. Here it is held to the pace
// of the run: on a machine on which the slowest renewal came in time these are the two
// seconds, and on one that is n times too slow n times as many. A bound without that would
// measure the neighbours.
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
			ended := clock.RealClock{}.Now()
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
			e.holdGap(ended, tc.runsOut, leases.pace(ended))
		})
	}
}

// holdSuccession fails the test unless another led after the leader of a reign, and not
// before the first must have ended, had it only lost its connection.
func (c *chronicle) holdSuccession(t *testing.T, leader int, runsOut time.Duration) {
	t.Helper()
	reigns := c.told()
	free := leader
	if runsOut == 0 {
		free++ // the reign of nobody
	}
	if leader < 0 || len(reigns) < free+2 || (reigns[free].holder == "") != (runsOut == 0) || reigns[free+1].holder == "" {
		t.Fatalf("the Lease was held by %+v, and number %d should have been followed", reigns, leader)
	}
	if reigns[leader].lasts != leaseLasts {
		t.Errorf("the Lease lasted %s, want %s", reigns[leader].lasts, leaseLasts)
	}
	if gap := reigns[free+1].began.Sub(reigns[free].last()); runsOut > 0 && gap < leaderEnds {
		t.Errorf("another led %s after the last sign of the first, which might still have led for %s", gap, leaderEnds-gap)
	}
}

// holdGap fails the test unless the second bound a claim in time after the first ended, at
// the pace of the run.
func (e *environment) holdGap(ended time.Time, runsOut time.Duration, pace float64) {
	e.Helper()
	if err := server.Audit.Settle(e.Context(), server.Config); err != nil {
		e.Fatal(err)
	}
	acted, err := server.Audit.First(apiserver.Filter{User: "second", Namespace: e.Namespace}, "patch sandboxes", "create sandboxes")
	if err != nil || acted.IsZero() {
		e.Fatalf("the second did nothing (%v)", err)
	}
	gap, most := acted.Sub(ended), runsOut+time.Duration(float64(promised)*pace)
	e.Logf("the second went on %s after the end of the first; at a pace of %.1f it has %s", gap, pace, most)
	if gap > most {
		e.Errorf("the second went on %s after the end of the first, want %s at most", gap, most)
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
