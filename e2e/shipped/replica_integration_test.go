// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// replica is a controller that is started again when it ends, as a kubelet does: on a
// machine that is too busy a leader cannot keep its Lease, and must end.
type replica struct {
	*apiserver.Process

	e     *environment
	user  string
	flags []string
}

// stayUp starts the controller again if it has ended.
func (r *replica) stayUp() {
	r.e.Helper()
	if ended := r.Failure(); ended != nil {
		r.e.Logf("%v", ended)
		r.Process = r.e.start(r.user, r.flags...)
	}
}

// reign is the time in which one holder had the Lease.
type reign struct {
	holder string
	// lasts is how long the Lease lasts after a sign of the holder.
	lasts time.Duration
	// began is when it took the Lease, and signs are when it did and when it renewed it.
	began time.Time
	signs []time.Time
}

// last is the last sign of the holder.
func (r *reign) last() time.Time { return r.signs[len(r.signs)-1] }

// chronicle are all who had the Lease, one after the other. The holder of a Lease that
// was given back is nobody.
type chronicle struct {
	mu     sync.Mutex
	reigns []reign
	// seen waits until all is noted.
	seen func()
}

// chronicle watches the Lease from now on.
func (e *environment) chronicle() *chronicle {
	e.Helper()
	c := &chronicle{}
	c.seen = e.Watch(&coordinationv1.LeaseList{}, func(event watch.Event) {
		if held, isLease := event.Object.(*coordinationv1.Lease); isLease && held.Name == lease {
			c.note(&held.Spec)
		}
	})
	return c
}

func (c *chronicle) note(spec *coordinationv1.LeaseSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	holder, renewed := ptr.Deref(spec.HolderIdentity, ""), spec.RenewTime.Time
	if last := len(c.reigns) - 1; last >= 0 && c.reigns[last].holder == holder {
		c.reigns[last].signs = append(c.reigns[last].signs, renewed)
		return
	}
	lasts := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second
	c.reigns = append(c.reigns, reign{holder: holder, lasts: lasts, began: spec.AcquireTime.Time, signs: []time.Time{renewed}})
}

// current is the number of the reign that lasts.
func (c *chronicle) current() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.reigns) - 1
}

// told tells what the watch saw: who followed whom.
func (c *chronicle) told() []reign {
	c.seen()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reigns)
}

// pace is how many times longer than it should have the slowest renewal took since a
// moment, by anybody: at least 1, and more on a machine that is too busy.
func (c *chronicle) pace(since time.Time) float64 {
	slowest := renewed
	for _, r := range c.told() {
		for i := 1; i < len(r.signs); i++ {
			if r.signs[i].After(since) {
				slowest = max(slowest, r.signs[i].Sub(r.signs[i-1]))
			}
		}
	}
	return float64(slowest) / float64(renewed)
}
