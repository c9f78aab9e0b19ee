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
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// A leader ends in the middle of a burst, by force or when it is told to, and the one
// that stood by goes on: no claim is lost and none is served twice.
func TestALeaderThatEndsInABurstIsReplaced(t *testing.T) {
	const claims, replicas = 100, 50
	cases := map[string]struct {
		end func(*apiserver.Process) error
		// within is how long after the last sign of life another leads.
		within time.Duration
	}{
		"killed: within the lease of 5 s and 2 s": {(*apiserver.Process).Kill, 7 * time.Second},
		"told to end: within 2 s":                 {(*apiserver.Process).Stop, 2 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			first := e.launch("first")
			e.fill(replicas)
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
			lastSign := clock.RealClock{}.Now()
			if err := tc.end(first); err != nil {
				t.Fatal(err)
			}
			inTime := witness.Served()
			if err := clients.Wait(); err != nil {
				t.Fatal(err)
			}
			e.served(claims, second)
			e.full(replicas)
			if doubles := witness.Doubles(); len(doubles) > 0 {
				t.Error(errors.Join(doubles...))
			}
			e.oneEach(claims, replicas)
			gap := e.lease().Spec.AcquireTime.Sub(lastSign)
			t.Logf("%d of %d claims had a Sandbox before; another led %s after", inTime, claims, gap)
			if gap > tc.within || inTime == claims || second.Failure() != nil {
				t.Errorf("another led after %s, want %s at most; %d of %d claims were served before: %v", gap, tc.within, inTime, claims, second.Failure())
			}
		})
	}
}

func (e *environment) lease() *coordinationv1.Lease {
	e.Helper()
	held := &coordinationv1.Lease{}
	e.Get(lease, held)
	return held
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
