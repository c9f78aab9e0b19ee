// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// What a change of leaders may take is a matter of what is configured, and is promised to
// users: two seconds after one that is told to end, and two more than the Lease lasts
// after one that is killed. How long it takes on a machine is measured in e2e/shipped.
func TestALeaderIsReplacedWithinWhatIsPromised(t *testing.T) {
	const promised, lasts = 2 * time.Second, 5 * time.Second
	options, err := managerOptions(Options{})
	if err != nil {
		t.Fatal(err)
	}
	// One that stands by waits for so long at most between two looks at the Lease.
	look := time.Duration((1 + leaderelection.JitterFactor) * float64(*options.RetryPeriod))
	if *options.LeaseDuration != lasts {
		t.Errorf("a Lease lasts %s, want %s", *options.LeaseDuration, lasts)
	}
	if !options.LeaderElectionReleaseOnCancel || look >= promised {
		t.Errorf("a Lease is given back: %t, which is seen after %s, want less than %s", options.LeaderElectionReleaseOnCancel, look, promised)
	}
	if gap := *options.LeaseDuration + 2*look; gap >= lasts+promised { // the last sign is seen late, and so is its age
		t.Errorf("a leader that is killed is replaced within %s, want less than %s", gap, lasts+promised)
	}
	// One that has lost its connection ends before another may lead, which may take its last
	// sign for one of up to a second before: renewals are told apart by whole seconds.
	if ends, free := *options.RenewDeadline+*options.RetryPeriod, *options.LeaseDuration-time.Second; ends >= free {
		t.Errorf("a leader without a connection goes on for %s, while another may lead after %s", ends, free)
	}
}
