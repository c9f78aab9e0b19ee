// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// perApiserver is which part of the apiserver's processor time the controller's may be:
// about a fifth of it is usual, whatever else the machine does.
const perApiserver = 0.5

// The budget of claims in every run: what a claim writes and in which order, what the
// refill adds at a rate and in a burst, how many times as long as its bare round trips it
// takes, and no claim that is served twice when more come than there are Sandboxes.
func TestClaimsKeepTheBudget(t *testing.T) {
	ctx := t.Context()
	// What follows Ready waits for as long as it can, so that no machine is too slow to tell
	// the two apart.
	d := newDesk(newWorld(t, ours(t, "--sandbox-write-behind-window=1s")), 20)
	one, orders := d.serve(ctx, kept(10))
	if one.Adopted != len(orders) {
		t.Errorf("%d of %d claims on a full pool had one of its Sandboxes", one.Adopted, len(orders))
	}
	for _, o := range orders {
		d.holdPath(o)
	}
	d.restartController(ctx, ours(t))
	steady, _ := d.serve(ctx, steady(5, 5))
	if err := steady.Overspent(); err != nil {
		t.Error(err)
	}
	ratio := float64(steady.Controller) / float64(steady.APIServer)
	t.Logf("processor time of the controller for that of the apiserver: %.2f (%s, %s)", ratio, steady.Controller, steady.APIServer)
	if ratio > perApiserver {
		t.Errorf("for each second of the apiserver's processor time the controller took %.2f, want %.2f at most", ratio, perApiserver)
	}
	t.Log(d.holdToBare(ctx, moderate(5)))
	for range 2 {
		overload, _ := d.serve(ctx, burst("overload", 50))
		if err := overload.Overspent(); err != nil {
			t.Error(err)
		}
	}
}

// moderate is the steady load at which claims are compared with bare round trips.
func moderate(seconds int) load { return steady(5, seconds) }

// kept claims come one by one, and are kept until all that they cost was written.
func kept(count int) load {
	return load{name: "kept", count: count, run: func(ctx context.Context, d *desk, orders []*order) error {
		for _, o := range orders {
			if err := d.claim(ctx, o); err != nil {
				return err
			}
			d.await(ctx, "all is written that claim "+o.name+" costs", func(ctx context.Context) error {
				path, err := d.path(ctx, o)
				if err == nil && len(path) < len(fullPath()) {
					err = fmt.Errorf("the writes are %v", path)
				}
				return err
			})
			if err := d.release(ctx, o); err != nil {
				return err
			}
			d.awaitFull(ctx)
		}
		return nil
	}}
}

// fullPath is what a claim costs: it is Ready after two writes, one that takes the Sandbox
// and one that says so. Three more tell of it, in the claim's annotations, in the Pod's
// metadata and in the Sandbox's status.
func fullPath() []string {
	return []string{takes, "patch sandboxclaims/status", "patch sandboxclaims", "patch pods", "patch sandboxes/status"}
}

// untilReady is how many of these writes come before Ready, and in this order: those that
// tell of it come as they can.
const untilReady = 2

// holdPath fails the test unless that is all that the claim cost, until it was gone.
func (d *desk) holdPath(o *order) {
	d.Helper()
	path, err := d.path(d.Context(), o)
	check(d, err)
	want := fullPath()
	slices.Sort(want[untilReady:])
	slices.Sort(path[min(untilReady, len(path)):])
	if diff := cmp.Diff(want, path); diff != "" {
		d.Errorf("writes of claim %s (-want +got):\n%s", o.name, diff)
	}
}

// path lists the controller's writes that a claim cost.
func (d *desk) path(ctx context.Context, o *order) ([]string, error) {
	if err := d.server.Audit.Settle(ctx, d.server.Config); err != nil {
		return nil, err
	}
	all, err := d.server.Audit.Order(apiserver.Filter{User: user, Namespace: namespace, Names: []string{o.name, o.sandbox}})
	if err != nil {
		return nil, err
	}
	path := Path(all)
	if !slices.Contains(path, takes) {
		return nil, fmt.Errorf("nobody took Sandbox %s for claim %s: %v", o.sandbox, o.name, all)
	}
	return path, nil
}

// Claims on a pool of a hundred, held to the budget: run with -benchtime=1x.
func BenchmarkClaims(b *testing.B) {
	ctx := b.Context()
	for b.Loop() {
		d := newDesk(newWorld(b, ours(b)), 100)
		text := "Begun " + machine(b) + ".\n\n"
		var results []Result
		for _, l := range []load{
			idle(30), steady(2, 20), steady(5, 20), steady(10, 20), steady(20, 15),
			burst("burst of 100", 100), burst("burst of 200", 200), burst("burst of 200 again", 200),
		} {
			result, _ := d.serve(ctx, l)
			results = append(results, result)
		}
		for _, excess := range Excesses(results) {
			b.Error(excess)
		}
		text += Table(results) + "\n" + d.holdToBare(ctx, moderate(20)) + "\n\nEnded " + machine(b) + ".\n\nWhat the controller wrote at " + results[2].Load + ":\n\n" + Breakdown(&results[2])
		publish(b, "claims", text)
	}
}
