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

// perCycle is how many writes of the controller a claim may cost until the pool is full
// again.
const perCycle = 9

// The budget of claims in every run: what a claim writes and in which order, what the
// refill adds, and no claim that is served twice when more come than there are
// Sandboxes.
func TestClaimsKeepTheBudget(t *testing.T) {
	ctx := t.Context()
	d := newDesk(newWorld(t, "--extensions"), 20)
	_, orders := d.serve(ctx, idle(10))
	for _, o := range orders {
		d.holdPath(o)
	}
	steady, _ := d.serve(ctx, steady(5, 5))
	if writes := steady.writes(); writes > perCycle*len(steady.Latencies) {
		t.Errorf("%d claims cost %d writes, which is more than %d each:\n%s", len(steady.Latencies), writes, perCycle, apiserver.Counts(steady.Writes))
	}
	d.serve(ctx, burst("overload", 50))
	d.serve(ctx, burst("overload", 50))
}

// holdPath fails the test unless the claim was Ready after two writes, one that took
// the Sandbox and one that said so, and cost five in all. Two of those bring the claim's
// metadata to the Pod, beside the path: nothing waits for them, so they come at any time
// after the first.
func (d *desk) holdPath(o *order) {
	d.Helper()
	path, err := d.path(d.Context(), o)
	check(d, err)
	beside := []string{"patch pods", "patch sandboxes/status"}
	var serial, parallel []string
	for _, write := range path {
		if slices.Contains(beside, write) {
			parallel = append(parallel, write)
		} else {
			serial = append(serial, write)
		}
	}
	if diff := cmp.Diff([]string{"patch sandboxes", "patch sandboxclaims/status", "patch sandboxclaims"}, serial); diff != "" {
		d.Errorf("writes of claim %s, Ready with the second (-want +got):\n%s", o.name, diff)
	}
	slices.Sort(parallel)
	if diff := cmp.Diff(beside, parallel); diff != "" {
		d.Errorf("writes beside claim %s (-want +got):\n%s", o.name, diff)
	}
}

// path lists the controller's writes to a claim and its Sandbox since it began to give
// it away.
func (d *desk) path(ctx context.Context, o *order) ([]string, error) {
	if err := d.server.Audit.Settle(ctx, d.server.Config); err != nil {
		return nil, err
	}
	all, err := d.server.Audit.Order(apiserver.Filter{User: user, Namespace: namespace, Names: []string{o.name, o.sandbox}})
	if err != nil {
		return nil, err
	}
	first := slices.Index(all, "patch sandboxes")
	if first < 0 {
		return nil, fmt.Errorf("nobody took Sandbox %s for claim %s: %v", o.sandbox, o.name, all)
	}
	return all[first:], nil
}

// Claims on a pool of a hundred: run with -benchtime=1x.
func BenchmarkClaims(b *testing.B) {
	ctx := b.Context()
	for b.Loop() {
		d := newDesk(newWorld(b, "--extensions"), 100)
		text := "Begun " + machine(b) + ".\n\n"
		var results []Result
		for _, l := range []load{
			idle(30), steady(2, 20), steady(5, 20), steady(10, 20), steady(20, 15),
			burst("burst of 100", 100), burst("burst of 200", 200), burst("burst of 200 again", 200),
		} {
			result, _ := d.serve(ctx, l)
			results = append(results, result)
		}
		text += Table(results) + "\nEnded " + machine(b) + ".\n\nWhat the controller wrote at " + results[2].Load + ":\n\n" + Breakdown(&results[2])
		publish(b, "claims", text)
	}
}
