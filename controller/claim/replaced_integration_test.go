// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// What a pass found out about a claim is not written to the next one of its name: that
// would name a Sandbox that is another's.
func TestAClaimIsNotToldOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"by its status": "/sandboxclaims/claim/status", "by its annotations": "/sandboxclaims/claim"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *environment
			replaced := make(chan struct{})
			m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: path, Happen: func() {
				defer close(replaced)
				e.Delete(e.claim("claim"))
				e.Create(makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = "nowhere" }))
			}}
			e = newEnvironment(t, func(made *environment) { made.Wrap = m.Wrap })
			e.pool().add("pool-1")
			e.Create(makeClaim("claim"))
			<-replaced
			said := e.reasons()
			claim := e.says(`False/WarmPoolNotFound: SandboxWarmPool "nowhere" not found`)
			if diff := cmp.Diff([]string{ReasonWarmPoolNotFound}, said()); diff != "" {
				t.Errorf("reasons of the second claim (-want +got):\n%s", diff)
			}
			if claim.Status.SandboxStatus.Name != "" || len(claim.Annotations) > 0 {
				t.Errorf("the second claim was told of the first: %+v, %v", claim.Status.SandboxStatus, claim.Annotations)
			}
		})
	}
}

// The first claim goes, and another one of its name comes, while nobody knows yet whether
// the first one got its Sandbox. That is there for others then.
func TestWhatWasBegunForAClaimIsNotKeptFromOthersByTheNextOfItsName(t *testing.T) {
	t.Parallel()
	var e *environment
	replaced := make(chan struct{})
	failing := &apiserver.Failing{Method: http.MethodPatch, Path: "/sandboxes/pool-1"}
	m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: failing.Path, Happen: func() {
		defer close(replaced)
		e.Delete(e.claim("claim"))
		next := makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = "nowhere" })
		e.Create(next)
		e.Eventually("the controller sees nothing but the second claim", func() error {
			seen := &extensionsv1beta1.SandboxClaim{}
			if err := e.reconciler.client.Get(t.Context(), e.Key("claim"), seen, lookup.Glance); err != nil || seen.UID != next.UID {
				return fmt.Errorf("it sees %s, %w", seen.UID, err)
			}
			return nil
		})
	}}
	e = newEnvironment(t, func(made *environment) {
		made.Wrap = func(next http.RoundTripper) http.RoundTripper { return m.Wrap(failing.Wrap(next)) }
	})
	stock := e.pool()
	stock.add("pool-1")
	stock.offers(1, 1)
	failing.Next(1)
	e.Create(makeClaim("claim"))
	<-replaced
	e.says(`False/WarmPoolNotFound: SandboxWarmPool "nowhere" not found`)
	stock.offers(1, 1)
}

// An Event is told once the status says the same. Otherwise each try would tell it again.
func TestAnEventIsToldOnceHoweverOftenItsStatusFails(t *testing.T) {
	t.Parallel()
	failing := &apiserver.Failing{Method: http.MethodPatch, Path: "/sandboxclaims/claim/status"}
	e := newEnvironment(t, func(e *environment) { e.Wrap, e.Told = failing.Wrap, &apiserver.Told{} })
	e.bound(withLifecycle(extensionsv1beta1.ClaimLifecycle{}))
	failing.Next(3)
	past := metav1.NewTime(e.Clock.Now().Add(-1))
	e.edit("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle.ShutdownTime = &past })
	e.says(saysExpired)
	e.Eventually("the Event is told", func() error {
		if told := e.Told.All(); len(told) < 2 {
			return errors.New("it is not")
		}
		return nil
	})
	e.stop()
	want := []string{`Normal SandboxAdopted: Adopted warm pool Sandbox "pool-1"`, "Normal ClaimExpired: Claim expired"}
	if diff := cmp.Diff(want, e.Told.All()); diff != "" || failing.Left() > 0 {
		t.Errorf("%d writes have yet to fail; Events (-want +got):\n%s", failing.Left(), diff)
	}
}
