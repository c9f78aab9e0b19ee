// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// room is an apiserver that has room for so many Sandboxes and counts who asked.
type room struct {
	client.Client

	left, asked atomic.Int64
}

func (r *room) Create(context.Context, client.Object, ...client.CreateOption) error {
	r.asked.Add(1)
	if r.left.Add(-1) < 0 {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "m", errors.New("exceeded quota: q"))
	}
	return nil
}

// A pool tries one, then two, then four, and stops after those among which one was
// refused: what is refused once will be refused again, a thousand times.
func TestMembersAreMadeInGrowingBatchesUntilOneIsRefused(t *testing.T) {
	cases := map[string]struct{ room, wanted, asked, made int }{
		"nothing is refused":                     {1000, 100, 100, 100},
		"all is refused":                         {0, 100, 1, 0},
		"the second is refused":                  {1, 100, 3, 1},
		"one of the third batch is refused":      {6, 100, 7, 6},
		"the first of the fourth is refused":     {7, 100, 15, 7},
		"no more are tried than there are to be": {2, 3, 3, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			apiserver := &room{}
			apiserver.left.Store(int64(tc.room))
			r := &Reconciler{client: apiserver}
			s := makeScope(func(s *scope) { s.model, s.plan.create = &agentsv1beta1.Sandbox{}, tc.wanted })
			var names []string
			for i := range tc.wanted {
				names = append(names, fmt.Sprintf("m%d", i))
			}
			made := len(r.inGrowingBatches(t.Context(), s, names))
			if asked := int(apiserver.asked.Load()); made != tc.made || asked != tc.asked {
				t.Errorf("%d were made of %d that were tried, want %d of %d", made, asked, tc.made, tc.asked)
			}
			if refused := s.memory.refusal.kind == heldQuota; refused != (tc.made < tc.wanted) {
				t.Errorf("the refusal is remembered: %t", refused)
			}
		})
	}
}

// A create whose answer was lost is repeated as far as there is room, that of a surge
// included: nothing else is made while nobody knows its fate.
func TestCreatesOfWhichNobodyKnowsAreRepeatedWhereThereIsRoom(t *testing.T) {
	unseen := map[string]sent{"lost-1": {doubtful: true}, "lost-2": {doubtful: true}, "made": {}}
	cases := map[string]struct {
		situation situation
		want      []string
	}{
		"as many as are missing":      {situation{desired: 4, members: many(2)}, []string{"lost-1"}},
		"none in a pool that is full": {situation{desired: 3, members: many(2)}, nil},
		"those of a rolling update": {
			situation{desired: 10, members: many(9, stale), strategy: extensionsv1beta1.UpdateStrategyRollingUpdate}, []string{"lost-1", "lost-2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.situation.now, tc.situation.grace, tc.situation.known, tc.situation.unseen = noon(), grace, true, len(unseen)
			s := makeScope(func(s *scope) { s.members, s.unseen, s.plan = tc.situation.members, unseen, decide(tc.situation) })
			if diff := cmp.Diff(tc.want, s.doubtful(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("repeated (-want +got):\n%s", diff)
			}
		})
	}
}
