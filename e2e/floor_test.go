// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// answersWhileAway is how many answers one target may give to code that asks it all the
// time, from the deletion of the floor until the network knows of the new one.
const answersWhileAway = 100

// An administrator deletes the floor under a Sandbox that tries all the time. Where the
// policy of its template is managed, nothing opens. Where it is not, the floor alone closes:
// it comes back after a few answers, and then nothing gets through any more, while an
// ordinary Pod reaches everything.
func TestFloorThatIsDeletedComesBack(t *testing.T) { //nolint:tparallel // Its parts share what they cost.
	t.Parallel()
	for management, most := range map[string]int{"Managed": 0, "Unmanaged": answersWhileAway} {
		t.Run(management, func(t *testing.T) {
			ctx := t.Context()
			ns := cluster.Namespace(ctx, t)
			within := inside(ctx, t, ns)
			w := map[string]watched{"Managed": under("public", within), "Unmanaged": under("none", within)}[management]
			w.mustReach(ctx, t, ns)
			cluster.MustApply(ctx, t, ns, asTemplate(probing("python", "public", w.command(), "dnsPolicy: ClusterFirst"))+"  networkPolicyManagement: "+management+"\n")
			cluster.MustApply(ctx, t, ns, emptyPool)
			cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
			sandbox := client.ObjectKey{Namespace: ns, Name: waitForClaim(ctx, t, ns).Status.SandboxStatus.Name}
			w.mustHold(ctx, t, ns, sandbox.Name)

			deleteFloor(ctx, t, ns)
			w.mustCloseSoon(ctx, t, sandbox)
			w.mustStayClosed(ctx, t, sandbox)
			log := w.wait(ctx, t, sandbox)
			for _, target := range w.closed {
				if answered := answersOf(log, target); answered > most {
					t.Errorf("%s answered %d times, want at most %d:\n%s", target, answered, most, log)
				}
			}
			everything := watched{open: slices.Concat(w.open, w.closed)}
			everything.wait(ctx, t, client.ObjectKey{Namespace: ns, Name: "control"})
		})
	}
}

// deleteFloor deletes the floor of a namespace as an administrator and waits for the new one.
func deleteFloor(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	before := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: isolation.FloorName}}
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Delete(ctx, before); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the floor is back", func(ctx context.Context) error {
		after := &networkingv1.NetworkPolicy{}
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(before), after); err != nil {
			return err
		}
		if after.UID == before.UID {
			return errors.New("it is the old one")
		}
		return nil
	})
}

// answersOf is how many answers a target gave that is lost by now.
func answersOf(log, target string) int {
	sum := 0
	for line := range strings.Lines(log) {
		var attempt, answers int
		if _, err := fmt.Sscanf(line, "lost "+target+" at attempt %d after %d answers", &attempt, &answers); err == nil {
			sum += answers
		}
	}
	return sum
}
