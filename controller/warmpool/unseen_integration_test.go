// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// The cache shows the template as late as it likes: the pool is filled from what the
// apiserver has, and never says that it is not there.
func TestAPoolFindsATemplateThatTheCacheHasNotSeenYet(t *testing.T) {
	t.Parallel()
	late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxtemplates")
	e := newEnvironment(t, func(e *environment) { e.Lag = late })
	late.Begin()
	said := e.reasonsOfPools()
	e.Create(makeTemplate(), makePool(2))
	e.settled(2)
	if got := said(); len(got) == 0 || slices.Contains(got, reasonTemplateNotFound) {
		t.Errorf("the pool said %v, want nothing of what was not found", got)
	}
}

// Scripts create pools and templates in one go, in any order.
func TestAPoolSaysNothingOfATemplateThatMayBeAboutToCome(t *testing.T) {
	t.Parallel()
	const times = 20
	e := newEnvironment(t)
	e.Clock.Halt() // until the templates are there, however long that takes
	said := e.reasonsOfPools()
	named := func(i int) string { return fmt.Sprintf("set-%d", i) }
	for i := range times {
		e.Create(makePool(0, func(p *extensionsv1beta1.SandboxWarmPool) { p.Name, p.Spec.TemplateRef.Name = named(i), named(i) }))
	}
	e.Eventually("the controller has worked on every pool", func() error { return e.met(times) })
	for i := range times {
		template := makeTemplate()
		template.Name = named(i)
		e.Create(template)
	}
	e.Eventually("every pool is complete", func() error {
		if got := e.Writes()["patch sandboxwarmpools/status"]; got < times {
			return fmt.Errorf("%d have said so", got)
		}
		return nil
	})
	if diff := cmp.Diff([]string{reasonComplete}, said()); diff != "" {
		t.Errorf("what pools said (-want +got):\n%s", diff)
	}
	e.Create(makePool(0))
	e.Eventually("the controller has worked on the last pool", func() error { return e.met(times + 1) })
	e.Clock.Jump(templateMay)
	e.saysProgressing(reasonTemplateNotFound)
	if got := e.Writes()["patch sandboxwarmpools/status"]; got != times+1 {
		t.Errorf("the status was written %d times, want once for each of %d pools", got, times+1)
	}
}

// met says so while the controller has not worked on so many pools.
func (e *environment) met(pools int) error {
	known := &e.reconciler.memories
	known.mu.Lock()
	defer known.mu.Unlock()
	if got := len(known.pools[e.Namespace]); got < pools {
		return fmt.Errorf("it has on %d", got)
	}
	return nil
}

// reasonsOfPools watches what pools say of their progress, and tells all that any ever said.
func (e *environment) reasonsOfPools() func() []string {
	e.Helper()
	var mu sync.Mutex
	said := map[string]bool{}
	caughtUp := e.Watch(&extensionsv1beta1.SandboxWarmPoolList{}, func(event watch.Event) {
		pool, isPool := event.Object.(*extensionsv1beta1.SandboxWarmPool)
		if !isPool {
			return
		}
		if c := meta.FindStatusCondition(pool.Status.Conditions, extensionsv1beta1.PoolConditionProgressing); c != nil {
			mu.Lock()
			defer mu.Unlock()
			said[c.Reason] = true
		}
	})
	return func() []string {
		caughtUp()
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(said))
	}
}
