// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// What refuses a claim its Sandbox may be gone a moment later, and says nothing of the next
// claim. The Sandbox itself never changes.
func TestAMemberThatTheApiserverRefusedOnceIsStillThere(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			failing := &apiserver.Failing{Method: http.MethodPatch, Path: "/sandboxes/pool-1", Code: code}
			e := newEnvironment(t, func(e *environment) { e.Wrap = failing.Wrap })
			stock := e.pool()
			stock.add("pool-1")
			stock.offers(1, 1)
			failing.Next(1)
			e.Create(makeClaim("claim"))
			e.Eventually("the claim is refused its Sandbox", func() error {
				if left := failing.Left(); left != 0 {
					return fmt.Errorf("%d tries are left to be refused", left)
				}
				return nil
			})
			e.edit("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Labels = map[string]string{"looked": "at"} })
			e.says(saysReady)
			e.named("pool-1")
		})
	}
}

// Whoever may not have a Sandbox of his own takes what the pool gets later, without an
// event of his own and without a timer: nobody tries again by himself.
func TestAClaimThatWasRefusedAColdStartIsWokenByTheRefill(t *testing.T) {
	t.Parallel()
	failing := &apiserver.Failing{Method: http.MethodPost, Path: "/sandboxes", Code: http.StatusUnprocessableEntity}
	failing.Next(1 << 30)
	e := newEnvironment(t, func(e *environment) { e.Wrap = failing.Wrap })
	stock := e.pool(emptyPool)
	e.Create(makeClaim("claim"))
	e.Eventually("the claim says that it was refused", func() error {
		if said := sayReady(e.claim("claim")); !strings.Contains(said, "injected: Unprocessable Entity") {
			return errors.New(said)
		}
		return nil
	})
	stock.add("pool-1")
	e.says(saysReady)
	e.named("pool-1")
}

// The policy of an administrator that refuses the Sandbox is no object that the claim waits
// for: it is tried again.
func TestAClaimThatAPolicyOfTheClusterRefusesIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.pool(emptyPool)
	denial, err := apiserver.Deny(t.Context(), e.Client, e.Namespace, "sandboxes")
	if err != nil {
		t.Fatal(err)
	}
	e.Create(makeClaim("claim"))
	e.Eventually("the claim says that it was refused", func() error {
		if said := sayReady(e.claim("claim")); !strings.Contains(said, "denied request: not today") {
			return errors.New(said)
		}
		return nil
	})
	if err := denial.Lift(t.Context(), e.Client); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the claim has its Sandbox", func() error {
		if n := len(e.sandboxes()); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// The cache goes on to show a template that is gone. Claims that find that out give back
// what they looked at.
func TestMembersOfATemplateThatIsGoneAreGivenBack(t *testing.T) {
	t.Parallel()
	const members = 3
	late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxtemplates")
	asked := &asks{of: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/sandboxtemplates/template")
	}}
	e := newEnvironment(t, func(e *environment) { e.Lag, e.Wrap = late, asked.wrap })
	stock := e.pool(func(_ *template, p *pool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: extensionsv1beta1.UpdateStrategyRecreate}
	})
	for i := range members + 1 {
		stock.add(fmt.Sprintf("pool-%d", i))
	}
	stock.offers(members+1, members+1)
	e.Create(makeClaim("first")) // once it is bound, the controller knows which claims were before it
	e.Eventually("the first claim is bound", func() error { return e.unbound(1, 0) })
	stock.offers(members, members)
	e.Eventually("the template is seen", func() error {
		return e.reconciler.client.Get(e.Context(), e.Key("template"), &template{}, lookup.Glance)
	})
	late.Begin()
	if err := e.Client.Delete(e.Context(), stock.template); err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	e.Create(makeClaim("claim"))
	e.Eventually("the claim has asked for the template again and again", func() error {
		if times := asked.Load() - before; times <= members {
			return fmt.Errorf("%d times", times)
		}
		return nil
	})
	e.Delete(e.claim("claim"))
	stock.offers(members, members)
}
