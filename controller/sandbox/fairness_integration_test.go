// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// fewOf is which part of a burst may be served before another namespace's object at most:
// what the workers were at, and what they end while one of them makes all that the other
// object needs first. A queue without turns lets nearly all of it go before.
const fewOf = 4

// A burst of Sandboxes stands in line, every worker is busy with it, and then one comes in
// another namespace: its Pod is made as soon as a worker is free, and not after the burst.
func TestABurstOfSandboxesDoesNotDelayThoseOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	const burst, atOnce = 200, 8
	gate := apiserver.NewGate(http.MethodPost, "/pods")
	other := server.NewEnvironment(t)
	e := newEnvironment(t, func(e *environment) { e.Wrap, e.Beside = gate.Wrap, []string{other.Namespace} })
	var clients errgroup.Group
	clients.SetLimit(atOnce)
	for i := range burst {
		sandbox := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Name = fmt.Sprintf("box-%d", i) })
		sandbox.Namespace, sandbox.UID = e.Namespace, ""
		clients.Go(func() error { return e.Client.Create(e.Context(), sandbox) })
	}
	if err := clients.Wait(); err != nil {
		t.Fatal(err)
	}
	gate.Line(e.Environment, workers, burst-workers, e.reconciler.waker.Queued)
	other.Create(makeSandbox())
	gate.Line(e.Environment, workers, burst-workers+1, e.reconciler.waker.Queued)
	gate.Open()
	e.Eventually("every Sandbox of the burst has a Pod", func() error {
		var pods corev1.PodList
		if err := e.Client.List(e.Context(), &pods, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) != burst {
			return fmt.Errorf("there are %d Pods", len(pods.Items))
		}
		return nil
	})
	if overtook := e.Overtook(other.Namespace, "create pods"); overtook > burst/fewOf {
		t.Errorf("%d Pods of the burst were made before the one of another namespace, want %d at most", overtook, burst/fewOf)
	}
}
