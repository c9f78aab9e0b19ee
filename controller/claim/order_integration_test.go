// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// inOneGo is how many sets of a claim, a pool and a template are on their way at once.
const inOneGo = 8

// Scripts create the three in one go, in any order. Clients give up at once when they
// read that one of them was not found. The caches lag, so that the controller sees the
// claim long before the others.
func TestNotFoundIsNeverToldOfWhatComesInTheSameMillisecond(t *testing.T) {
	t.Parallel()
	const times = 1000
	late := apiserver.NewLag(1, time.Second, 0)
	e := newEnvironment(t, func(e *environment) { e.Lag, e.setting.ConcurrentWorkers = late, 32 })
	late.Begin()
	said := e.reasons()
	var sets errgroup.Group
	sets.SetLimit(inOneGo)
	for i := range times {
		sets.Go(func() error { return e.reversed(fmt.Sprintf("set-%d", i)) })
	}
	if err := sets.Wait(); err != nil {
		t.Fatal(err)
	}
	e.Eventually("every claim is bound", func() error { return e.unbound(times, 0) })
	got := said()
	if len(got) == 0 || slices.ContainsFunc(got, func(reason string) bool { return strings.HasSuffix(reason, "NotFound") }) {
		t.Errorf("claims said %v, want nothing of what was not found", got)
	}
}

// reversed creates a claim, its pool and the pool's template, each without waiting for
// the one before.
func (e *environment) reversed(name string) error {
	var together errgroup.Group
	for _, object := range []client.Object{
		makeClaim(name, func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = name }),
		makePool(func(p *pool) { emptyPool(nil, p); p.Name, p.Spec.TemplateRef.Name = name, name }),
		makeTemplate(func(t *template) { t.Name = name }),
	} {
		object.SetNamespace(e.Namespace)
		object.SetUID("")
		together.Go(func() error { return e.Client.Create(e.Context(), object) })
	}
	return together.Wait()
}

// reasons watches what the Ready conditions of claims say, and tells all reasons that
// any of them ever had.
func (e *environment) reasons() func() []string {
	e.Helper()
	var mu sync.Mutex
	said := map[string]bool{}
	caughtUp := e.Watch(&extensionsv1beta1.SandboxClaimList{}, func(event watch.Event) {
		mu.Lock()
		defer mu.Unlock()
		if claim, isClaim := event.Object.(*extensionsv1beta1.SandboxClaim); isClaim && storedReason(claim) != "" {
			said[storedReason(claim)] = true
		}
	})
	return func() []string {
		caughtUp()
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(said))
	}
}
