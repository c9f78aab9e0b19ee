// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// witness sees every change of the Sandboxes of a namespace as it was stored and
// remembers who had which.
type witness struct {
	mu sync.Mutex
	// had are the Sandboxes that each claim had, served the claims that each Sandbox had.
	had, served map[types.UID]map[types.UID]string
}

func (e *environment) witness() *witness {
	e.t.Helper()
	w := &witness{had: map[types.UID]map[types.UID]string{}, served: map[types.UID]map[types.UID]string{}}
	watcher, err := e.client.Watch(context.Background(), &agentsv1beta1.SandboxList{}, client.InNamespace(e.namespace))
	if err != nil {
		e.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			w.see(event)
		}
	}()
	e.t.Cleanup(func() { watcher.Stop(); <-done })
	return w
}

func (w *witness) see(event watch.Event) {
	sandbox, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
	if !isSandbox || event.Type == watch.Deleted {
		return
	}
	owner := extensionOwner(sandbox, extensionsv1beta1.SandboxClaimKind)
	if owner == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	put(w.had, owner.UID, sandbox.UID, sandbox.Name)
	put(w.served, sandbox.UID, owner.UID, owner.Name)
}

func put(in map[types.UID]map[types.UID]string, key, value types.UID, name string) {
	if in[key] == nil {
		in[key] = map[types.UID]string{}
	}
	in[key][value] = name
}

// doubles lists every claim that ever had two Sandboxes and every Sandbox that ever
// had two claims.
func (w *witness) doubles() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for claim, sandboxes := range w.had {
		if len(sandboxes) > 1 {
			errs = append(errs, fmt.Errorf("claim %s had %d Sandboxes: %v", claim, len(sandboxes), sandboxes))
		}
	}
	for sandbox, claims := range w.served {
		if len(claims) > 1 {
			errs = append(errs, fmt.Errorf("sandbox %s had %d claims: %v", sandbox, len(claims), claims))
		}
	}
	return errors.Join(errs...)
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
			if err := w.doubles(); err != nil {
				t.Error(err)
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
