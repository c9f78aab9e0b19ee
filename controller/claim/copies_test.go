// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// copies notes what is copied out of a cache.
type copies struct {
	// sandboxes are how often each was, by its name.
	sandboxes map[string]int
	// lists are the kinds of lists that were read, and whether what they hold was copied.
	lists map[string]struct{}
}

// watch has the copies noted that a controller asks for from now on.
func (c *copies) watch(t *testing.T, r *Reconciler) {
	t.Helper()
	cached, isCache := r.client.(client.WithWatch)
	if !isCache {
		t.Fatalf("%T cannot be watched", r.client)
	}
	c.sandboxes, c.lists = map[string]int{}, map[string]struct{}{}
	r.client = interceptor.NewClient(cached, interceptor.Funcs{
		Get: func(ctx context.Context, next client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, isSandbox := into.(*agentsv1beta1.Sandbox); isSandbox {
				c.sandboxes[key.Name]++
			}
			return next.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, next client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			copied := asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy
			c.lists[fmt.Sprintf("%T, copied: %t", into, copied)] = struct{}{}
			return next.List(ctx, into, options...)
		},
	})
}

func TestAPassReadsASandboxOnceHoweverOftenItIsNamed(t *testing.T) {
	cases := map[string]struct {
		members []*agentsv1beta1.Sandbox
		want    map[string]int
	}{
		"of a claim that has a member of the pool": {
			[]*agentsv1beta1.Sandbox{makeMemberOf(t, makePool(), makeTemplate(), "box", 0)}, map[string]int{"box": 1, "claim": 1},
		},
		"of a claim that has a new one": {want: map[string]int{"claim": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, c := makeClaim("claim"), &copies{}
			r := makePasses(t, claim, tc.members...)
			passOver(t, r, claim)
			c.watch(t, r)
			passOver(t, r, claim)
			if diff := cmp.Diff(tc.want, c.sandboxes); diff != "" {
				t.Errorf("reads of Sandboxes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsOnlyLookedThroughIsNotCopied(t *testing.T) {
	claim, c, queue := makeClaim("claim"), &copies{}, &timers{}
	r := makePasses(t, claim)
	c.watch(t, r)
	passOver(t, r, claim)
	r.poolEvents().Create(t.Context(), event.CreateEvent{Object: makePool()}, queue)
	r.templateEvents().Create(t.Context(), event.CreateEvent{Object: makeTemplate()}, queue)
	want := []string{
		"*v1beta1.SandboxClaimList, copied: false", "*v1beta1.SandboxList, copied: false", "*v1beta1.SandboxWarmPoolList, copied: false",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(c.lists))); diff != "" || len(queue.after) == 0 {
		t.Errorf("%d passes were asked for, and was read (-want +got):\n%s", len(queue.after), diff)
	}
}
