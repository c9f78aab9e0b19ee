// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"context"
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// listed counts the objects that lists give.
type listed struct {
	client.Client
	count int
}

func (l *listed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Client.List(ctx, list, opts...)
	l.count += meta.LenList(list)
	return err
}

// noLists fails the test when somebody lists from the apiserver.
type noLists struct {
	client.Reader
	t *testing.T
}

func (n noLists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	n.t.Errorf("a list of %T from the apiserver", list)
	return nil
}

// What a Sandbox costs does not depend on how many others there are.
func TestNoListGrowsWithTheNumberOfSandboxes(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withVolume("data"), withClaimSpec, withService(true)))
	cached := &listed{Client: e.reconciler.client}
	observed := New(cached, noLists{e.reconciler.live, t}, e.reconciler.recorder, e.Clock, e.reconciler.settings)
	costs := map[string]func(){
		"a pass": func() {
			if _, err := observed.Reconcile(t.Context(), e.request(boxName)); err != nil {
				t.Fatal(err)
			}
		},
		"an event of its Pod":          func() { observed.sandboxesOfPod(t.Context(), pod) },
		"an event of its volume claim": func() { observed.sandboxesOfClaim(t.Context(), claimOf(e)) },
		"its deletion": func() {
			if err := observed.leave(t.Context(), e.request("gone").NamespacedName, nil); err != nil {
				t.Fatal(err)
			}
		},
	}
	cost := func(do func()) int {
		cached.count = 0
		do()
		return cached.count
	}
	alone := map[string]int{}
	for name, do := range costs {
		alone[name] = cost(do)
	}
	if alone["a pass"] == 0 {
		t.Fatal("a pass lists nothing: the test proves nothing")
	}
	const many = 20
	for i := range many {
		other := makeSandbox(withVolume("data"), withClaimSpec, withService(true))
		other.Name = fmt.Sprintf("other-%d", i)
		e.running(other)
	}
	for name, do := range costs {
		if got := cost(do); got != alone[name] {
			t.Errorf("%s lists %d objects among %d Sandboxes, %d alone", name, got, many+1, alone[name])
		}
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: isolation.ProfileName("public")}}
	if got := cost(func() { observed.sandboxesOfPolicy(t.Context(), policy) }); got == 0 || got > representatives {
		t.Errorf("an event of the policy of all lists %d Pods, at most %d are to stand for them", got, representatives)
	}
}
