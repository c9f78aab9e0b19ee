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
