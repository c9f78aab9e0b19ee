// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// Get finds nothing, or the Sandbox of somebody else that has the name.
func (a *answering) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if sandbox, isSandbox := into.(*agentsv1beta1.Sandbox); isSandbox && apierrors.IsAlreadyExists(a.answer) {
		sandbox.Namespace, sandbox.Name = key.Namespace, key.Name
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "sandboxes"}, key.Name)
}

// A create whose answer was lost may still be carried out for as long as an apiserver works
// on one, whatever becomes of its repetition: until then its name counts and no other is tried.
func TestACreateIsInDoubtUntilItCannotBeCarriedOutAnyMore(t *testing.T) {
	taken := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "sandboxes"}, "m")
	first, second := []string{"pool-1"}, []string{"pool-2"}
	type step struct {
		after  time.Duration
		answer error
		want   []string
	}
	cases := map[string][]step{
		"its repetition is forbidden": {
			{0, errNoAnswer, first}, {2 * time.Second, forbidden("no"), first}, {10 * time.Second, forbidden("no"), first},
			{patch.DoubtFor - time.Second, forbidden("no"), first}, {patch.DoubtFor + 30*time.Second, nil, second},
		},
		"there are too many requests": {
			{0, errNoAnswer, first}, {2 * time.Second, apierrors.NewTooManyRequests("later", 1), first}, {10 * time.Second, nil, first},
		},
		"its repetition is lost as well": {
			{0, errNoAnswer, first}, {time.Minute, errNoAnswer, first}, {patch.DoubtFor, forbidden("no"), first},
			{patch.DoubtFor + 50*time.Second, forbidden("no"), first}, {2*patch.DoubtFor + time.Minute, nil, second},
		},
		"somebody else has the name by then": {
			{0, errNoAnswer, first}, {2 * time.Second, taken, first}, {10 * time.Second, nil, nil}, {patch.DoubtFor - time.Second, nil, nil},
			{patch.DoubtFor + askAfter, nil, second},
		},
		"nothing of it was ever lost": {
			{0, forbidden("no"), first}, {2 * time.Second, taken, second}, {10 * time.Second, nil, []string{"pool-3"}},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			st := newStage(Settings{})
			made := 0
			st.reconciler.suffix = func() string { made++; return string(rune('0' + made)) }
			for i, step := range steps {
				st.apiserver.answer = step.answer
				st.act(t, step.after, having(1, extensionsv1beta1.UpdateStrategyOnReplenish), func(s *scope) {
					s.unseen = st.memory.unseen.snapshot()
					if err := st.reconciler.settleUnseen(t.Context(), s); err != nil {
						t.Fatal(err)
					}
				})
				if diff := cmp.Diff(step.want, st.apiserver.creates(), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("step %d: asked for (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// An orphan is adopted in the version that was seen: once it has another, a write that was lost
// comes too late. Nothing locks a create, and what has its name may go.
func TestWhatMayComeOfAWriteWhoseAnswerWasLost(t *testing.T) {
	orphan := makeMember("m").sandbox
	orphan.UID, orphan.ResourceVersion = "m-uid", "7"
	changed, another := orphan.DeepCopy(), orphan.DeepCopy()
	changed.ResourceVersion, another.UID = "8", "other-uid"
	create, adoption := sent{doubtful: true, lostAt: noon()}, sent{uid: "m-uid", version: "7", lostAt: noon()}
	cases := map[string]struct {
		of    sent
		found *agentsv1beta1.Sandbox
		after time.Duration
		want  bool
	}{
		"a create of which there is nothing yet":            {create, nil, time.Minute, true},
		"a create in whose place is another":                {create, another, time.Minute, true},
		"a create, when its time is over":                   {create, nil, patch.DoubtFor, false},
		"a create that was answered":                        {sent{uid: "m-uid"}, nil, 0, false},
		"an adoption of what is as it was":                  {adoption, orphan, time.Minute, true},
		"an adoption of what is as it was, when it is over": {adoption, orphan, patch.DoubtFor, false},
		"an adoption of what changed":                       {adoption, changed, time.Minute, false},
		"an adoption of what is another of that name":       {adoption, another, time.Minute, false},
		"an adoption of what is gone":                       {adoption, nil, time.Minute, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.mayCome(tc.found, noon().Add(tc.after)); got != tc.want {
				t.Errorf("mayCome() = %t, want %t", got, tc.want)
			}
		})
	}
}
