// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// shelf is a cache of policies that gives out what it has, copied unless it is asked not to, and
// takes what is written.
type shelf struct {
	client.Client

	held    map[client.ObjectKey]*networkingv1.NetworkPolicy
	copies  int
	written []*networkingv1.NetworkPolicy
}

func newShelf(policies ...*networkingv1.NetworkPolicy) *shelf {
	s := &shelf{held: map[client.ObjectKey]*networkingv1.NetworkPolicy{}}
	for _, policy := range policies {
		s.held[client.ObjectKeyFromObject(policy)] = policy
	}
	return s
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	held, found := s.held[key]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "networkpolicies"}, key.Name)
	}
	asked := (&client.GetOptions{}).ApplyOptions(options)
	if asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		s.copies++
		held = held.DeepCopy()
	}
	*into.(*networkingv1.NetworkPolicy) = *held
	return nil
}

func (s *shelf) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	s.written = append(s.written, object.(*networkingv1.NetworkPolicy))
	return nil
}

// Every pass over a Sandbox looks at its policies. Those that are what they have to be cost a
// look and no copy, and one that is mended stays in the cache as it is until that has the other.
func TestAPolicyIsCopiedOnlyToBeMended(t *testing.T) {
	cases := map[string]struct {
		edit func(*networkingv1.NetworkPolicy)
		want []*networkingv1.NetworkPolicy
	}{
		"one that is as it has to be": {edit: func(*networkingv1.NetworkPolicy) {}},
		"one that opens more": {
			func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}} },
			[]*networkingv1.NetworkPolicy{isolation.Floor("team-a")},
		},
		"one that lost a label": {
			func(p *networkingv1.NetworkPolicy) { clear(p.Labels) },
			[]*networkingv1.NetworkPolicy{isolation.Floor("team-a")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			held := isolation.Floor("team-a")
			tc.edit(held)
			before, shelf := held.DeepCopy(), newShelf(held)
			if err := New(shelf, shelf, "test").Shared(t.Context(), isolation.Floor("team-a")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shelf.written); diff != "" || shelf.copies != 0 {
				t.Errorf("it was copied %d times to be read, and written (-want +got):\n%s", shelf.copies, diff)
			}
			if diff := cmp.Diff(before, held); diff != "" {
				t.Errorf("what the cache has changed (-before +now):\n%s", diff)
			}
		})
	}
}
