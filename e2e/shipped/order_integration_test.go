// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// A burst finds its claims before any refill is made. The claims are there when the
// controller starts, so that it never sees a moment without one.
func TestRefillsComeAfterTheClaimsOfABurst(t *testing.T) {
	cases := map[string]struct {
		claims int
		flags  []string
	}{
		"after the bindings":                    {8, nil},
		"after the Sandboxes that started cold": {12, []string{"--claim-cold-start-after=0s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const replicas = 8
			e := newEnvironment(t)
			filler := e.launch("filler")
			e.fill(replicas, filler)
			if err := filler.Stop(); err != nil {
				t.Fatal(err)
			}
			for i := range tc.claims {
				e.Create(makeClaim(fmt.Sprintf("claim-%d", i)))
			}
			seen := e.versions()
			controller := e.launch("server", append(tc.flags, "--sandbox-warm-pool-yield-to-bindings=5m", "--sandbox-warm-pool-yield-to-cold-starts=5m")...)
			e.served(tc.claims, controller)
			e.full(replicas, controller)
			refills, served := seen()
			if len(refills) != replicas || len(served) != tc.claims {
				t.Fatalf("%d refills and %d claims that became Ready were seen, want %d and %d", len(refills), len(served), replicas, tc.claims)
			}
			if first, last := slices.Min(refills), slices.Max(served); first < last {
				t.Errorf("the first refill was made at version %d, before the last claim was Ready at %d", first, last)
			}
		})
	}
}

// versions watches and tells at which versions of the store members were made and
// claims became Ready.
func (e *environment) versions() func() (refills, served []uint64) {
	e.Helper()
	var mu sync.Mutex
	refills, served := map[string]uint64{}, map[string]uint64{}
	before := map[string]bool{}
	for _, sandbox := range e.sandboxes() {
		before[sandbox.Name] = true
	}
	note := func(into map[string]uint64, object client.Object) {
		version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		mu.Lock()
		defer mu.Unlock()
		if _, known := into[object.GetName()]; !known && err == nil {
			into[object.GetName()] = version
		}
	}
	sandboxesSeen := e.Watch(&agentsv1beta1.SandboxList{}, func(event watch.Event) {
		sandbox, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
		if isSandbox && relations.Pool(sandbox) != nil && !before[sandbox.Name] {
			note(refills, sandbox)
		}
	})
	claimsSeen := e.Watch(&extensionsv1beta1.SandboxClaimList{}, func(event watch.Event) {
		claim, isClaim := event.Object.(*extensionsv1beta1.SandboxClaim)
		if isClaim && meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionReady) {
			note(served, claim)
		}
	})
	return func() ([]uint64, []uint64) {
		sandboxesSeen()
		claimsSeen()
		mu.Lock()
		defer mu.Unlock()
		return values(refills), values(served)
	}
}

func values(of map[string]uint64) []uint64 {
	var all []uint64
	for _, value := range of {
		all = append(all, value)
	}
	return all
}
