// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// clients create Sandboxes at once, each one after the other.
const clients = 8

// figures are what a load cost.
type figures struct {
	writes apiserver.Counts
	// heapBefore and heapAfter are bytes in use, after a collection.
	heapBefore, heapAfter int
}

// A hundred Sandboxes in every run, so that the budget is held between benchmarks.
func TestAHundredSandboxesKeepTheBudget(t *testing.T) {
	got := bringUp(t, 100)
	t.Logf("heap %d bytes a Sandbox; writes:\n%s", (got.heapAfter-got.heapBefore)/100, got.writes)
}

// A thousand Sandboxes on fake nodes: run with -benchtime=1x.
func BenchmarkThousandSandboxes(b *testing.B) {
	const count = 1000
	for b.Loop() {
		begun := machine(b)
		got := bringUp(b, count)
		publish(b, "sandboxes", "Begun "+begun+".\n\n"+
			fmt.Sprintf("| writes a Sandbox | heap a Sandbox, bytes | heap in all, divided by %d |\n|---|---|---|\n", count)+
			fmt.Sprintf("| %.2f | %d | %d |\n", float64(got.writes.Total())/count, (got.heapAfter-got.heapBefore)/count, got.heapAfter/count))
	}
}

// bringUp brings so many Sandboxes to Ready and holds their cost to the budget.
func bringUp(tb testing.TB, count int) figures {
	tb.Helper()
	ctx := tb.Context()
	w := newWorld(tb, unjudged(tb)) // the memory that policies take comes and goes
	got := figures{heapBefore: w.heap(ctx)}
	check(tb, create(ctx, w.admin, count))
	got.heapAfter = w.heap(ctx)
	got.writes = w.writes(ctx)
	holdToBudget(tb, got.writes, count)
	return got
}

// holdToBudget: POST Pod and one status write; where the Pod took longer than a second,
// on a busy machine, the status may show it as pending and as scheduled before. The
// policies are the namespace's.
func holdToBudget(tb testing.TB, writes apiserver.Counts, count int) {
	tb.Helper()
	status := writes["patch sandboxes/status"]
	want := apiserver.Counts{"create pods": count, "create networkpolicies": 2, "patch sandboxes/status": status}
	if writes.Total() != want.Total() || writes["create pods"] != count || status < count || status > 3*count {
		tb.Errorf("writes for %d Sandboxes are over budget:\n%s", count, writes)
	}
}

func makeSandbox(name string) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{keys.PodName: name}, // as admission sets it
	}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	return sandbox
}

func create(ctx context.Context, admin client.Client, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range count {
		group.Go(func() error { return createAndWait(ctx, admin, makeSandbox(fmt.Sprintf("box-%d", i))) })
	}
	return group.Wait()
}

// createAndWait is one client: the next Sandbox comes when this one is Ready, so that
// the load is one that the apiserver and the scheduler can follow.
func createAndWait(ctx context.Context, admin client.Client, sandbox *agentsv1beta1.Sandbox) error {
	if err := admin.Create(ctx, sandbox); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, glimpse, patience, false, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(sandbox), sandbox)
		return meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady), err
	})
}
