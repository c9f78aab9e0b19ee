// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"fmt"
	"net/http"
	"testing"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Many pools stand in line, the worker is busy with one of them, and then one comes in
// another namespace: it is filled when the worker is free, and not after the others.
func TestManyPoolsDoNotDelayThoseOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	const pools, worker = 40, 1
	gate := apiserver.NewGate(http.MethodPost, "/sandboxes")
	other := server.NewEnvironment(t)
	e := newEnvironment(t, func(e *environment) { e.Wrap, e.Beside = gate.Wrap, []string{other.Namespace} })
	e.Create(makeTemplate())
	other.Create(makeTemplate())
	for i := range pools {
		e.Create(makePool(1, func(p *extensionsv1beta1.SandboxWarmPool) { p.Name = fmt.Sprintf("pool-%d", i) }))
	}
	gate.Line(e.Environment, worker, pools-worker, e.reconciler.waker.Queued)
	other.Create(makePool(1))
	gate.Line(e.Environment, worker, pools-worker+1, e.reconciler.waker.Queued)
	gate.Open()
	e.Eventually("every pool is filled", func() error {
		if members := len(e.members()); members != pools {
			return fmt.Errorf("there are %d members", members)
		}
		return nil
	})
	// The one that the worker was at, and the one whose turn it was.
	if overtook := e.Overtook(other.Namespace, "create sandboxes"); overtook > 2*worker {
		t.Errorf("%d pools were filled before the one of another namespace, want %d at most", overtook, 2*worker)
	}
}

// A pool that deletes many at once does so in several passes: the worker is free for one of
// another namespace after the first.
func TestAPoolThatDeletesManyDoesNotDelayThoseOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	const members, batch = 24, 4
	gate := apiserver.NewGate(http.MethodDelete, "")
	other := server.NewEnvironment(t)
	e := newEnvironment(t, func(e *environment) {
		e.Wrap, e.Beside, e.settings.Refill.MaxBatch = gate.Wrap, []string{other.Namespace}, batch
	})
	e.Create(makeTemplate(), makePool(members))
	other.Create(makeTemplate())
	e.settled(members)
	change(e, makePool(0), func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(0)) })
	gate.Line(e.Environment, batch, 0, e.reconciler.waker.Queued)
	other.Create(makePool(1))
	gate.Line(e.Environment, batch, 1, e.reconciler.waker.Queued)
	gate.Open()
	e.settled(0)
	if err := server.Audit.Settle(e.Context(), server.Config); err != nil {
		t.Fatal(err)
	}
	writes, err := server.Audit.Order(apiserver.Filter{User: e.User})
	if err != nil {
		t.Fatal(err)
	}
	deleted, made := 0, 0
	for _, write := range writes {
		switch write {
		case "create sandboxes":
			made++
		case "delete sandboxes":
			if made <= members {
				deleted++
			}
		}
	}
	if made != members+1 || deleted != batch {
		t.Errorf("%d members were deleted before the pool of another namespace was filled, want %d; %d were made", deleted, batch, made)
	}
}
