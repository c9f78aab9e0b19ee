// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// fewOf is which part of a burst may be served before another namespace's object at most:
// what the workers were at, and what they end while one of them makes all that the other
// object needs first. A queue without turns lets nearly all of it go before.
const fewOf = 4

// A burst of claims stands in line, every worker is busy with it, and then a claim comes
// in another namespace: it is bound as soon as a worker is free, and not after the burst.
func TestABurstOfClaimsDoesNotDelayThoseOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	const burst = 300
	gate := apiserver.NewGate(http.MethodPost, "/sandboxes")
	other := server.NewEnvironment(t)
	e := newEnvironment(t, func(e *environment) { e.Wrap, e.Beside = gate.Wrap, []string{other.Namespace} })
	workers := e.setting.ConcurrentWorkers
	e.pool(emptyPool)
	other.Create(makeTemplate(), makePool(func(p *pool) { emptyPool(nil, p) }))
	var clients errgroup.Group
	clients.SetLimit(inOneGo)
	for i := range burst {
		claim := makeClaim(fmt.Sprintf("claim-%d", i))
		claim.Namespace, claim.UID = e.Namespace, ""
		clients.Go(func() error { return e.Client.Create(e.Context(), claim) })
	}
	if err := clients.Wait(); err != nil {
		t.Fatal(err)
	}
	gate.Line(e.Environment, workers, burst-workers, e.reconciler.waker.Queued)
	other.Create(makeClaim("claim"))
	gate.Line(e.Environment, workers, burst-workers+1, e.reconciler.waker.Queued)
	gate.Open()
	e.Eventually("every claim of the burst is bound", func() error { return e.unbound(burst, 0) })
	if overtook := e.Overtook(other.Namespace, "create sandboxes"); overtook > burst/fewOf {
		t.Errorf("%d claims of the burst were bound before the one of another namespace, want %d at most", overtook, burst/fewOf)
	}
}
