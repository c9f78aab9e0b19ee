// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	templates "github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/warmpool"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Whatever came and went would stay in its queue for ever, and go before new claims once it leads.
func TestWhatComesAndGoesWaitsForNoReplicaThatStandsBy(t *testing.T) {
	t.Parallel()
	const claims = 20
	e := newEnvironment(t)
	heir, stop := e.launch(true)
	e.pool(emptyPool)
	for i := range claims {
		e.Create(makeClaim(fmt.Sprintf("claim-%d", i)))
	}
	e.Eventually("every claim is bound", func() error { return e.unbound(claims, 0) })
	if err := e.Client.DeleteAllOf(e.Context(), &extensionsv1beta1.SandboxClaim{}, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the replica that stands by has seen them go", func() error {
		var list extensionsv1beta1.SandboxClaimList
		var sandboxes agentsv1beta1.SandboxList
		if err := errors.Join(heir.client.List(e.Context(), &list), heir.client.List(e.Context(), &sandboxes)); err != nil {
			return err
		}
		if len(list.Items) != 0 || len(sandboxes.Items) != claims {
			return fmt.Errorf("it has %d claims and %d Sandboxes", len(list.Items), len(sandboxes.Items))
		}
		return nil
	})
	if got := heir.waker.Queued(); got != 0 {
		t.Errorf("%d claims wait for a replica that stands by, and there is none", got)
	}
	e.handOverTo(heir, stop)
	e.Create(makeClaim("claim"))
	e.says(saysNotReady)
}

// watches are what a connection was asked to watch.
type watches struct {
	mu    sync.Mutex
	paths map[string]bool
	next  http.RoundTripper
}

// Wrap suits apiserver.Setup.
func (w *watches) Wrap(next http.RoundTripper) http.RoundTripper {
	w.next = next
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *watches) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		w.mu.Lock()
		w.paths[request.URL.Path] = true
		w.mu.Unlock()
	}
	return w.next.RoundTrip(request)
}

func (w *watches) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.paths))
}

// The caches of a replica that stands by are filled, whichever controllers it has: none waits
// for a list of anything when it takes the lead.
func TestAReplicaThatTakesTheLeadHasAllThatItWatches(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.stop()
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(byObject, CacheByObject())
	setup := apiserver.Setup{Add: e.setUpAll, ByObject: byObject, Elected: "all"}
	first := e.Run(setup)
	asked := &watches{paths: map[string]bool{}}
	setup.StandsBy, setup.Wrap = true, asked.Wrap
	e.Run(setup)
	e.Eventually("the replica that stands by watches the policies of others too", func() error {
		if got := asked.all(); !slices.Contains(got, "/apis/networking.k8s.io/v1/networkpolicies") {
			return fmt.Errorf("it watches %v", got)
		}
		return nil
	})
	before := asked.all()
	first()
	e.pool(emptyPool)
	e.Create(makeClaim("claim"))
	e.Eventually("the claim has its Pod", func() error {
		if !e.Exists("claim", &corev1.Pod{}) {
			return errors.New("it has none")
		}
		return nil
	})
	if diff := cmp.Diff(before, asked.all()); diff != "" {
		t.Errorf("what is watched, before it took the lead and since (-before +since):\n%s", diff)
	}
}

// setUpAll adds every controller that serves claims.
func (e *environment) setUpAll(ctx context.Context, mgr ctrl.Manager) error {
	every, err := exposure.EveryPolicy(ctx, mgr)
	if err != nil {
		return err
	}
	recorder, current := e.Recorder(mgr), apiserver.Platform
	return errors.Join(
		sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{},
			sandbox.Settings{Platform: current(), Current: current, EveryPolicy: every, ClusterDomain: "cluster.local", ConcurrentWorkers: 1}).
			SetupWithManager(ctx, mgr),
		templates.New(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{},
			templates.Settings{Current: current, EveryPolicy: every, Changed: make(chan event.GenericEvent), ConcurrentWorkers: 1}).
			SetupWithManager(ctx, mgr),
		warmpool.New(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{},
			warmpool.Settings{Current: current, ConcurrentWorkers: 1, Refill: warmpool.Refill{MaxBatch: 1}}).SetupWithManager(ctx, mgr),
		New(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{}, e.setting).SetupWithManager(ctx, mgr),
	)
}
