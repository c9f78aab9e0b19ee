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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// glances notes how passes read the cache.
type glances struct {
	// reads are the kinds that were read, and whether the cache had to have seen first what
	// this process wrote.
	reads map[string]struct{}
	// given is what was given without a copy, and as what.
	given map[client.Object]runtime.Object
}

// Get suits interceptor.Funcs.
func (g *glances) Get(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	asked := (&client.GetOptions{}).ApplyOptions(options)
	err := c.Get(ctx, key, into, options...)
	g.reads[fmt.Sprintf("%T, waited for: %t", into, !asked.DisableReadYourWritesConsistency)] = struct{}{}
	if err == nil && asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy {
		g.given[into] = into.DeepCopyObject()
	}
	return err
}

// Pools and templates get a new status, and namespaces new labels, while claims are being
// served: no claim waits until that is seen. What is shared with the cache stays as it is.
func TestAClaimWaitsForItsOwnWritesAloneAndChangesNothingThatItShares(t *testing.T) {
	cases := map[string]struct {
		members  []*agentsv1beta1.Sandbox
		launched string
	}{
		"from the pool": {[]*agentsv1beta1.Sandbox{makeMemberOf(t, makePool(), makeTemplate(), "box", 0)}, blueprint.LaunchWarm},
		"a new one":     {nil, blueprint.LaunchCold},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := &glances{reads: map[string]struct{}{}, given: map[client.Object]runtime.Object{}}
			claim := makeClaim("claim", withPodMetadata(map[string]string{"sandbox.users.io/team": "a"}, nil))
			r := newPasses(t, seen, claim, tc.members...)
			for range 2 { // the first gives it a Sandbox, the second maintains that
				passOver(t, r, claim)
			}
			var sandboxes agentsv1beta1.SandboxList
			if err := r.client.List(t.Context(), &sandboxes); err != nil || len(sandboxes.Items) != 1 ||
				!serves(&sandboxes.Items[0], claim) || sandboxes.Items[0].Labels[keys.LaunchType] != tc.launched {
				t.Fatalf("there are the Sandboxes %+v, %v, want a %s one of the claim", sandboxes.Items, err, tc.launched)
			}
			want := []string{
				"*v1.Namespace, waited for: false", "*v1beta1.Sandbox, waited for: true", "*v1beta1.SandboxClaim, waited for: true",
				"*v1beta1.SandboxTemplate, waited for: false", "*v1beta1.SandboxWarmPool, waited for: false",
			}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen.reads))); diff != "" {
				t.Errorf("was read (-want +got):\n%s", diff)
			}
			for now, given := range seen.given {
				if diff := cmp.Diff(given, runtime.Object(now)); diff != "" {
					t.Errorf("what was shared has changed (-given +now):\n%s", diff)
				}
			}
		})
	}
}

// newPasses is a Reconciler whose pool has these members, all fit for the claim.
func newPasses(t *testing.T, seen *glances, claim *extensionsv1beta1.SandboxClaim, members ...*agentsv1beta1.Sandbox) *Reconciler {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	pool := makePool(func(p *extensionsv1beta1.SandboxWarmPool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: extensionsv1beta1.UpdateStrategyRecreate}
	})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(claim).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace}}, pool, makeTemplate(), claim)
	for _, index := range relations.OfExtensions() {
		builder.WithIndex(index.Object, index.Name, func(object client.Object) []string { return []string{index.Value(object)} })
	}
	for _, member := range members {
		builder.WithObjects(member)
	}
	live := builder.Build()
	cached := interceptor.NewClient(live, interceptor.Funcs{Get: seen.Get})
	r := New(cached, live, nil, clocktesting.NewFakePassiveClock(noon()), Settings{Current: apiserver.Platform, NoEvents: true})
	if err := r.inherited.load(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	r.inherited.settle(claim.UID)
	r.index.SetNode("node", true)
	for _, member := range members {
		r.index.SetPod(member.UID, candidates.Pod{UID: member.UID, Ready: true, Node: "node"})
		r.noteSandbox(nil, member)
	}
	return r
}
