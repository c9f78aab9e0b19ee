// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// inOneGo is how many sets of a claim, a pool and a template are on their way at once.
const inOneGo = 8

// Scripts create the three in one go, in any order: half of the sets all at once, the others
// one after the other, the claim first. Clients give up at once when they
// read that one of them was not found. The caches lag, so that the controller sees the
// claim long before the others. A set that an apiserver took too long for did not come in
// one go, whatever was said of it: another comes in its place.
func TestNotFoundIsNeverToldOfWhatComesInTheSameMillisecond(t *testing.T) {
	t.Parallel()
	const times = 1000
	late := apiserver.NewLag(1, time.Second, 0)
	e := newEnvironment(t, func(e *environment) { e.Lag, e.setting.ConcurrentWorkers = late, 32 })
	late.Begin()
	said := e.reasonsOfClaims()
	var sets errgroup.Group
	sets.SetLimit(inOneGo)
	var stalled atomic.Int64
	inTime := make([]string, times)
	for i := range times {
		sets.Go(func() (err error) {
			inTime[i], err = e.inTime(fmt.Sprintf("set-%d", i), i%2 == 0, &stalled)
			return err
		})
	}
	if err := sets.Wait(); err != nil {
		t.Fatal(err)
	}
	made := times + int(stalled.Load())
	e.Eventually("every claim is bound", func() error { return e.unbound(made, 0) })
	got := said()
	for _, claim := range inTime {
		if reasons := got[claim]; len(reasons) == 0 || slices.ContainsFunc(reasons, func(r string) bool { return strings.HasSuffix(r, "NotFound") }) {
			t.Errorf("claim %s said %v, want something, and nothing of what was not found", claim, reasons)
		}
	}
	t.Logf("%d of %d sets took the apiserver longer than a claim waits", stalled.Load(), made)
}

// inTime creates sets until the apiserver has taken one before the time is over in which a
// claim waits for the others, and tells its name. The controller can have seen its claim
// only after the first request was sent, and the answers are there before it may speak.
func (e *environment) inTime(name string, atOnce bool, stalled *atomic.Int64) (string, error) {
	for try := 0; ; try++ {
		set, began := fmt.Sprintf("%s-%d", name, try), clock.RealClock{}.Now()
		if err := e.reversed(set, atOnce); err != nil {
			return "", err
		}
		if (clock.RealClock{}).Since(began) < notFoundAfter {
			return set, nil
		}
		stalled.Add(1)
	}
}

// The caches show the pool or its template as late as they like: what the apiserver has
// is found there, and its claim is served.
func TestNotFoundIsNeverToldOfWhatTheCacheHasNotSeenYet(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"the pool is not seen":     {"sandboxwarmpools"},
		"the template is not seen": {"sandboxtemplates"},
		"neither is seen":          {"sandboxwarmpools", "sandboxtemplates"},
	}
	for name, unseen := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of(unseen...)
			e := newEnvironment(t, func(e *environment) { e.Lag = late })
			e.Clock.Halt() // until both are there, however long that takes
			said := e.reasons()
			e.Create(makeClaim("claim"))
			e.Eventually("the claim is seen", func() error { return e.seen("claim") })
			late.Begin()
			e.pool(emptyPool)
			for range 3 { // those before the time for it are over read the cache alone
				e.jump("claim", notFoundAfter/2)
			}
			e.says(saysNotReady)
			if diff := cmp.Diff([]string{ReasonSandboxNotReady}, said()); diff != "" {
				t.Errorf("reasons of the claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(unseen, e.unseen()); diff != "" {
				t.Errorf("what the cache lacks (-want +got):\n%s", diff)
			}
		})
	}
}

// seen says whether the controller has worked on the claim.
func (e *environment) seen(claim string) error {
	known := &e.reconciler.memory
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.records[e.Key(claim)] == nil {
		return errors.New("nobody has worked on it")
	}
	return nil
}

// unseen tells which of the pool and the template the controller's cache does not show.
func (e *environment) unseen() []string {
	e.Helper()
	var missing []string
	for _, object := range []struct {
		name, resource string
		like           client.Object
	}{{"pool", "sandboxwarmpools", &pool{}}, {"template", "sandboxtemplates", &template{}}} {
		err := e.reconciler.client.Get(e.Context(), e.Key(object.name), object.like, lookup.Glance)
		if client.IgnoreNotFound(err) != nil {
			e.Fatal(err)
		}
		if err != nil {
			missing = append(missing, object.resource)
		}
	}
	return missing
}

// reversed creates a claim, its pool and the pool's template, in this order or all at once.
func (e *environment) reversed(name string, atOnce bool) error {
	objects := []client.Object{
		makeClaim(name, func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = name }),
		makePool(func(p *pool) { emptyPool(nil, p); p.Name, p.Spec.TemplateRef.Name = name, name }),
		makeTemplate(func(t *template) { t.Name = name }),
	}
	var together errgroup.Group
	if !atOnce {
		together.SetLimit(1)
	}
	for _, object := range objects {
		object.SetNamespace(e.Namespace)
		object.SetUID("")
		together.Go(func() error { return e.Client.Create(e.Context(), object) })
	}
	if err := together.Wait(); err != nil || atOnce {
		return err
	}
	for i, object := range objects[1:] {
		if versionOf(object.GetResourceVersion()) <= versionOf(objects[i].GetResourceVersion()) {
			return fmt.Errorf("of %s, %T was made before %T", name, object, objects[i])
		}
	}
	return nil
}

// reasons watches what the Ready conditions of claims say, and tells all reasons that
// any of them ever had.
func (e *environment) reasons() func() []string {
	e.Helper()
	said := e.reasonsOfClaims()
	return func() []string {
		all := []string{}
		for _, reasons := range said() {
			all = append(all, reasons...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
}

// reasonsOfClaims watches the same, and tells by the name of each claim which reasons it had.
func (e *environment) reasonsOfClaims() func() map[string][]string {
	e.Helper()
	var mu sync.Mutex
	said := map[string][]string{}
	caughtUp := e.Watch(&extensionsv1beta1.SandboxClaimList{}, func(event watch.Event) {
		claim, isClaim := event.Object.(*extensionsv1beta1.SandboxClaim)
		if !isClaim {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if reason := storedReason(claim); reason != "" && !slices.Contains(said[claim.Name], reason) {
			said[claim.Name] = append(said[claim.Name], reason)
		}
	})
	return func() map[string][]string {
		caughtUp()
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(said)
	}
}
