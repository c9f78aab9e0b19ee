// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// patient is a claim that gives up after five minutes without a Sandbox.
func patient(c *extensionsv1beta1.SandboxClaim) {
	c.Annotations = map[string]string{keys.BindTimeout: "5m"}
}

// gaveUp waits until the claim "claim" has expired and is counted as one that gave up.
func (e *environment) gaveUp() {
	e.Helper()
	e.says(saysExpired)
	e.Eventually("it is counted", func() error {
		var counted dto.Metric
		err := e.reconciler.metrics.failures.WithLabelValues(troubleBindTimeout).Write(&counted)
		if got := counted.GetCounter().GetValue(); err != nil || got != 1 {
			return fmt.Errorf("%v times, %w", got, err)
		}
		return nil
	})
}

// asks counts certain requests of a client.
type asks struct {
	atomic.Int64

	of func(*http.Request) bool
}

func (a *asks) wrap(next http.RoundTripper) http.RoundTripper { return &counting{asks: a, next: next} }

type counting struct {
	asks *asks
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.asks.of(request) {
		c.asks.Add(1)
	}
	return c.next.RoundTrip(request)
}

// forAllOfAClaim are requests for all that a claim controls.
func forAllOfAClaim(request *http.Request) bool {
	return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/sandboxes") &&
		strings.Contains(request.URL.Query().Get("labelSelector"), keys.ClaimUID)
}

// What was tried in vain keeps no claim from giving up. Whether it was in vain, the
// apiserver says.
func TestAClaimGivesUpWhateverWasTriedForIt(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		wrap func(*environment, http.RoundTripper) http.RoundTripper
		// tries lets the claim be tried for in vain.
		tries func(*environment)
	}{
		"a quota refuses its cold start": {nil, func(e *environment) {
			none := corev1.ResourceList{"count/sandboxes.agents.x-k8s.io": resource.MustParse("0")}
			if err := apiserver.Quota(e.Context(), e.Client, e.Namespace, none); err != nil {
				e.Fatal(err)
			}
			e.pool(emptyPool)
			e.Create(makeClaim("claim", patient))
			e.Eventually("the claim says what refuses it", func() error {
				if got := sayReady(e.claim("claim")); !strings.Contains(got, "exceeded quota") {
					return errors.New(got)
				}
				return nil
			})
		}},
		"another took its member": {
			func(e *environment, next http.RoundTripper) http.RoundTripper { return &thief{e: e, next: next} },
			func(e *environment) {
				stock := e.pool()
				stock.add("pool-1")
				stock.offers(1, 1)
				e.Create(makeClaim("claim", patient))
				e.Eventually("the claim waits for another", func() error { return waits(e) })
				if owner := stock.member("pool-1").OwnerReferences[0]; owner.Name != "other" {
					e.Errorf("the member belongs to %s: the test proves nothing", owner.Name)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := &asks{of: forAllOfAClaim}
			e := newEnvironment(t, func(e *environment) {
				e.Wrap = asked.wrap
				if tc.wrap != nil {
					e.Wrap = func(next http.RoundTripper) http.RoundTripper { return tc.wrap(e, asked.wrap(next)) }
				}
			})
			tc.tries(e)
			before := asked.Load()
			e.jump("claim", 5*time.Minute)
			e.gaveUp()
			e.named("")
			if asked.Load() == before {
				t.Error("the claim gave up, and nobody asked the apiserver whether it has a Sandbox")
			}
		})
	}
}

// The controller before gave the claim a Sandbox and did not live to say so. The cache of
// the one that follows does not show it, and the time is up.
func TestAClaimThatHasASandboxDoesNotGiveUpWhateverTheCacheShows(t *testing.T) {
	t.Parallel()
	late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxes")
	e := newEnvironment(t, func(e *environment) { e.Lag = late })
	takeOver, said := e.standBy(), e.reasons()
	e.stop()
	late.Begin()
	claim := makeClaim("claim", patient)
	e.Create(claim)
	given := makeGiven(claim)
	e.Create(given)
	e.report("claim", func(s *agentsv1beta1.SandboxStatus) { *s = readyStatus() })
	e.Clock.Jump(5 * time.Minute)
	takeOver()
	e.says(saysReady)
	e.named("claim")
	if got := said(); slices.Contains(got, ReasonClaimExpired) {
		t.Errorf("the claim said %v", got)
	}
}

// makeGiven is the Sandbox that an earlier leader made for a claim.
func makeGiven(claim *extensionsv1beta1.SandboxClaim) *agentsv1beta1.Sandbox {
	return makeSandbox(func(s *agentsv1beta1.Sandbox) {
		s.Name, s.ResourceVersion, s.Labels[keys.ClaimUID] = claim.Name, "", string(claim.UID)
		s.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
		}
	})
}

// A client that was told of the end has turned to something else: it would never look at
// the claim again, and its Sandbox would stay.
func TestWhatArrivesAfterAClaimGaveUpGoes(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	claim := makeClaim("claim", patient)
	e.Create(claim)
	e.jump("claim", 5*time.Minute)
	e.gaveUp()
	said := e.reasons()
	e.Create(makeGiven(claim))
	e.Eventually("the late Sandbox is gone", func() error {
		if left := e.sandboxes(); len(left) != 0 {
			return fmt.Errorf("there is %s", left[0].Name)
		}
		return nil
	})
	e.says(saysExpired)
	e.named("")
	if got := said(); slices.ContainsFunc(got, func(reason string) bool { return reason != ReasonClaimExpired }) {
		t.Errorf("the claim said %v", got)
	}
}

// Each list goes through all Sandboxes of a namespace, so that a burst of claims must not
// cost one for each.
func TestAColdStartOfANewClaimAsksForNoList(t *testing.T) {
	t.Parallel()
	const claims = 20
	asked := &asks{of: forAllOfAClaim}
	e := newEnvironment(t, func(e *environment) { e.Wrap = asked.wrap })
	w := e.Witness()
	e.pool(emptyPool)
	e.Create(makeClaim("claim")) // once it is bound, the controller knows which claims were before it
	e.says(saysNotReady)
	before := asked.Load()
	for i := range claims {
		e.Create(makeClaim(fmt.Sprintf("claim-%d", i)))
	}
	e.Eventually("every claim is bound", func() error { return e.unbound(claims+1, 0) })
	if got := asked.Load() - before; got != 0 {
		t.Errorf("the apiserver was asked for %d lists, want none", got)
	}
	if doubles := w.Doubles(); len(doubles) > 0 {
		t.Error(errors.Join(doubles...))
	}
}
