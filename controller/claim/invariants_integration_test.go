// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// witness watches who has which Sandbox until the test ends.
func (e *environment) witness() *apiserver.Witness {
	e.t.Helper()
	w, err := apiserver.NewWitness(context.Background(), e.client, e.namespace)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(w.Stop)
	return w
}

// rounds is how many seeds are tried; CLAIM_ROUNDS sets another number.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CLAIM_ROUNDS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Caches lag by seconds, watches break, requests fail before and after they are
// carried out, and in the middle another controller takes over whose caches have not
// seen what the first one did last.
func TestOneSandboxForOneClaimWhateverTheCachesShow(t *testing.T) {
	const claims, members = 40, 25
	for seed := range rounds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			plan := uint64(seed)
			faults, late := apiserver.NewFaults(plan, 0.05), newLag(plan, 4*time.Second, 0.02)
			e := newEnvironment(t, func(e *environment) { e.faults, e.lag = faults, late })
			takeOver, w := e.standBy(), e.witness()
			stock := e.pool()
			for i := range members / 2 {
				stock.add(fmt.Sprintf("pool-%d", i))
			}
			for i := range claims {
				e.create(makeClaim(fmt.Sprintf("claim-%d", i)))
			}
			for i := members / 2; i < members; i++ {
				stock.add(fmt.Sprintf("pool-%d", i))
			}
			e.eventually("some claims are bound", func() error { return e.unbound(claims, claims*3/4) })
			takeOver()
			e.eventually("most claims are bound", func() error { return e.unbound(claims, claims/4) })
			faults.Stop()
			late.stop()
			e.eventually("every claim is bound", func() error { return e.unbound(claims, 0) })
			for _, double := range w.Doubles() {
				t.Error(double)
			}
			e.consistent()
			t.Logf("%d requests were disturbed; writes:\n%s", faults.Count(), e.writes())
		})
	}
}

// unbound says so when more claims than allowed have no Sandbox.
func (e *environment) unbound(claims, allowed int) error {
	var list extensionsv1beta1.SandboxClaimList
	if err := e.client.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
		return err
	}
	bound := 0
	for i := range list.Items {
		if list.Items[i].Status.SandboxStatus.Name != "" {
			bound++
		}
	}
	if claims-bound > allowed {
		return fmt.Errorf("%d of %d claims have no Sandbox", claims-bound, claims)
	}
	return nil
}

// consistent fails the test unless each claim names the one Sandbox that it controls.
func (e *environment) consistent() {
	e.t.Helper()
	owned := map[types.UID]string{}
	sandboxes := e.sandboxes()
	for i := range sandboxes {
		if owner := metav1.GetControllerOf(&sandboxes[i]); owner != nil && owner.Kind == extensionsv1beta1.SandboxClaimKind {
			owned[owner.UID] = sandboxes[i].Name
		}
	}
	var list extensionsv1beta1.SandboxClaimList
	if err := e.client.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
		e.t.Fatal(err)
	}
	for i := range list.Items {
		if claim := &list.Items[i]; owned[claim.UID] != claim.Status.SandboxStatus.Name {
			e.t.Errorf("claim %s names Sandbox %q and controls %q", claim.Name, claim.Status.SandboxStatus.Name, owned[claim.UID])
		}
	}
}
