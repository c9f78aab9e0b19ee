// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// countsWrites says how many patches and creations a controller sends from now on.
func (a *archive) countsWrites() *int {
	sent := new(int)
	a.r.client = interceptor.NewClient(a.stored, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			*sent++
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			*sent++
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			*sent++
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
	return sent
}

// The cache may show a claim for a while after a write was told that it is deleted.
func TestAClaimThatAWriteFoundDeletedIsLeftAlone(t *testing.T) {
	served := func(c *extensionsv1beta1.SandboxClaim) {
		ready(c, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady)
		c.Status.SandboxStatus.Name = "box"
	}
	cases := map[string]struct {
		claim *extensionsv1beta1.SandboxClaim
		// seen are objects beside it.
		seen []client.Object
	}{
		"when its annotations were due": {makeClaim("claim", served), []client.Object{makeSandbox(func(s *agentsv1beta1.Sandbox) {
			s.ResourceVersion, s.OwnerReferences = "", []metav1.OwnerReference{
				*metav1.NewControllerRef(makeClaim("claim"), extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
			}
		})}},
		"when its status was": {claim: makeClaim("claim")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t, tc.claim, tc.seen...)
			stale := a.claim()
			if err := a.stored.Delete(t.Context(), a.claim()); err != nil {
				t.Fatal(err)
			}
			sent, queue := a.countsWrites(), &timers{}
			if err := a.r.waker.Source().Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			look := func(want int, when string) {
				t.Helper()
				queue.after = nil
				if err := a.r.pass(t.Context(), stale); err != nil {
					t.Errorf("a pass %s ends in %v", when, err)
				}
				if *sent != want {
					t.Errorf("%s %d writes were sent, want %d", when, *sent, want)
				}
				if len(queue.after) != 1 || queue.after[0] > goneFor { // a queue keeps the earliest only
					t.Errorf("a pass %s asks for the next after %v, want one within %s", when, queue.after, goneFor)
				}
			}
			a.r.memory.of(client.ObjectKeyFromObject(stale), stale.UID, a.clock.Now())
			a.clock.Step(notFoundAfter) // from here on a claim is told what it lacks
			look(1, "first")
			look(1, "at once")
			a.clock.Step(goneFor - time.Millisecond)
			look(1, "before it counts as there again")
			a.clock.Step(time.Millisecond)
			look(2, "when the answer may have meant something else")
		})
	}
}
