// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// silence is an apiserver with two members of a pool that receives the write which takes the
// first one, and does not answer.
type silence struct {
	*Reconciler

	pass *scope
	live client.Client
	time *clocktesting.FakePassiveClock
	// shows is what the cache shows of the first member; nil for what there is.
	shows func() (*agentsv1beta1.Sandbox, error)
	// refusal is how the next writes are answered; nil when they are carried out.
	refusal error
}

func newSilence(t *testing.T) *silence {
	t.Helper()
	s := &silence{pass: makeScope(), refusal: io.ErrUnexpectedEOF, time: clocktesting.NewFakePassiveClock(noon())}
	s.pass.pool, s.pass.template = makePool(), makeTemplate()
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	members := []*agentsv1beta1.Sandbox{
		makeMemberOf(t, s.pass.pool, s.pass.template, "first", 2), makeMemberOf(t, s.pass.pool, s.pass.template, "second", 1),
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, s.pass.claim, s.pass.template, members[0], members[1],
	).Build()
	cached := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if shown, isSandbox := into.(*agentsv1beta1.Sandbox); isSandbox && key.Name == "first" && s.shows != nil {
				sandbox, err := s.shows()
				if sandbox != nil {
					sandbox.DeepCopyInto(shown)
				}
				return err
			}
			return c.Get(ctx, key, into, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if s.refusal != nil {
				return s.refusal
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	s.live = live
	s.Reconciler = New(cached, live, nil, s.time, Settings{Current: apiserver.Platform, NoEvents: true})
	s.index.SetNode("node", true)
	for _, member := range members {
		s.index.SetPod(member.UID, candidates.Pod{UID: member.UID, Ready: true, Node: "node"})
		s.noteSandbox(nil, member)
	}
	if err := s.again(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) || s.pass.record.adopting == nil {
		t.Fatalf("the first pass ended in %v and has sent %v", err, s.pass.record.adopting)
	}
	s.refusal = nil
	return s
}

// again is the part of another pass that finds the claim a Sandbox, unless it has one.
func (s *silence) again(ctx context.Context) error {
	before := s.pass
	if before.sandbox != nil {
		return nil
	}
	s.pass = makeScope()
	s.pass.now = s.time.Now()
	s.pass.claim, s.pass.record, s.pass.pool, s.pass.template, s.pass.epoch = before.claim, before.record, before.pool, before.template, s.index.Epoch()
	if err := s.settle(ctx, s.pass); err != nil || s.pass.sandbox != nil {
		return err
	}
	return s.adopt(ctx, s.pass)
}

// taken are the names of the members that are a claim's.
func (s *silence) taken(t *testing.T) (names []string) {
	t.Helper()
	var list agentsv1beta1.SandboxList
	if err := s.live.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if relations.Claim(&list.Items[i]) != nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// lagging lets the cache show the first member as it was before it could be taken.
func (s *silence) lagging() {
	s.shows = func() (*agentsv1beta1.Sandbox, error) {
		old := s.pass.record.adopting.judged.DeepCopy()
		old.ResourceVersion, old.Spec.OperatingMode = "998", agentsv1beta1.OperatingModeSuspended
		return old, nil
	}
}

// What became of a write without an answer, the apiserver alone can say: while the Sandbox is
// there as it was judged, the claim takes that one and no other, whatever the cache shows,
// whatever it asks for now and whatever the next write meets.
func TestAClaimTakesNoOtherSandboxWhileAWriteMayStillSucceed(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "sandboxes"}, "first")
	cases := map[string]func(*silence){
		"the cache is as the apiserver":       func(*silence) {},
		"the cache shows it as it was before": (*silence).lagging,
		"the cache has lost it": func(s *silence) {
			s.shows = func() (*agentsv1beta1.Sandbox, error) { return nil, gone }
		},
		"the claim asks another pool now": func(s *silence) {
			s.pass.pool = makePool(func(p *extensionsv1beta1.SandboxWarmPool) { p.Name = "other" })
		},
		"the next write is refused":            func(s *silence) { s.refusal = apierrors.NewForbidden(schema.GroupResource{}, "first", nil) },
		"the next write meets a conflict":      func(s *silence) { s.refusal = apierrors.NewConflict(schema.GroupResource{}, "first", nil) },
		"the next write finds too many before": func(s *silence) { s.refusal = apierrors.NewTooManyRequests("later", 1) },
	}
	for name, meanwhile := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSilence(t)
			meanwhile(s)
			sent := *s.pass.record.adopting
			for range 2 {
				if err := s.again(t.Context()); (err != nil) != (s.refusal != nil) {
					t.Errorf("the pass ends in %v", err)
				}
				s.refusal = nil
			}
			s.lands(t, sent)
			if got := s.taken(t); len(got) != 1 || got[0] != "first" || s.pass.record.bound != "first" {
				t.Errorf("the claim has %v and knows of %q", got, s.pass.record.bound)
			}
		})
	}
}

// lands lets the write that was not answered be carried out, unless its version is no more.
func (s *silence) lands(t *testing.T, sent adoption) {
	t.Helper()
	taken := handOver(sent.judged, s.pass.claim, sent.judged.Spec.PodTemplate.ObjectMeta)
	err := s.live.Patch(t.Context(), taken, client.MergeFromWithOptions(sent.judged, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// A write that is refused for as long as an apiserver may have worked on the one before is no longer in doubt: the pool
// keeps the member, another one is the claim's, and the claim is woken when that time is over.
func TestAClaimTakesAnotherSandboxOnceTheLostWriteCannotBeUnderWayAnyMore(t *testing.T) {
	s := newSilence(t)
	s.refusal = apierrors.NewForbidden(schema.GroupResource{}, "first", nil)
	lost := s.pass.record.adopting.lostAt
	if err := s.again(t.Context()); err == nil || s.pass.record.adopting == nil || !s.pass.wake.Equal(lost.Add(patch.DoubtFor)) {
		t.Fatalf("while it is in doubt the pass ends in %v, with %v sent, and is repeated at %s", err, s.pass.record.adopting, s.pass.wake)
	}
	s.time.SetTime(lost.Add(patch.DoubtFor))
	if err := s.again(t.Context()); err == nil || s.pass.record.adopting != nil {
		t.Fatalf("afterwards the pass ends in %v, with %v sent", err, s.pass.record.adopting)
	}
	s.refusal = nil
	if err := s.again(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.taken(t); len(got) != 1 || got[0] != "second" {
		t.Errorf("the claim has %v, want the second one", got)
	}
}

// Once the version is another, the write can never succeed, and the next Sandbox is the claim's.
func TestAClaimTakesAnotherSandboxOnceTheWriteCanNeverSucceed(t *testing.T) {
	s := newSilence(t)
	suspended := &agentsv1beta1.Sandbox{}
	if err := s.live.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "first"}, suspended); err != nil {
		t.Fatal(err)
	}
	suspended.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended
	if err := s.live.Update(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	s.noteSandbox(nil, suspended)
	if err := s.again(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.taken(t); len(got) != 1 || got[0] != "second" {
		t.Errorf("the claim has %v, want the second one", got)
	}
}

// A creation that was not answered may still be carried out although the next one is refused.
// Until it cannot any more, the claim takes nothing from its pool.
func TestAClaimTakesNoMemberWhileItsSandboxMayStillBeMade(t *testing.T) {
	a := newArchive(t, makeClaim("claim"), makeTemplate(), makePool())
	var answer error
	a.answers(func() error { return answer })
	refusal := apierrors.NewForbidden(schema.GroupResource{}, "claim", errors.New("exceeded quota: q"))
	for pass, step := range []struct {
		answer error
		after  time.Duration
		tries  bool
	}{{refusal, 0, false}, {io.ErrUnexpectedEOF, 0, true}, {refusal, time.Second, true}, {refusal, time.Minute, true}, {refusal, time.Minute, false}} {
		answer = step.answer
		a.clock.Step(step.after)
		a.pass()
		known, _ := a.r.memory.of(client.ObjectKeyFromObject(a.claim()), a.claim().UID, a.clock.Now())
		if known.creating != step.tries || !known.touched {
			t.Errorf("after pass %d the claim waits for a Sandbox that may still be made: %t, want %t", pass, known.creating, step.tries)
		}
	}
}

// Somebody else's Sandbox has the name of the claim's, and is about to go. A creation that was
// not answered before may still be carried out then: until it cannot any more, the claim takes
// nothing from its pool.
func TestAClaimTakesNoMemberWhileWhatHoldsItsNameMayGiveWay(t *testing.T) {
	cases := map[string]func(*archive, func(error)){
		"it is met before the creation is repeated": func(a *archive, _ func(error)) { a.squat() },
		"it is met when the creation is repeated": func(_ *archive, answer func(error)) {
			answer(apierrors.NewAlreadyExists(schema.GroupResource{}, "claim"))
		},
	}
	for name, meet := range cases {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t, makeClaim("claim"), makeTemplate(), makePool())
			answer := io.ErrUnexpectedEOF
			a.answers(func() error { return answer })
			a.pass()
			meet(a, func(err error) { answer = err })
			for _, step := range []struct {
				after time.Duration
				may   bool
			}{{time.Second, true}, {time.Minute, true}, {time.Minute, false}} {
				a.clock.Step(step.after)
				a.pass()
				known, _ := a.r.memory.of(client.ObjectKeyFromObject(a.claim()), a.claim().UID, a.clock.Now())
				if known.creating != step.may {
					t.Errorf("%s later the claim waits for a Sandbox that may still be made: %t, want %t", step.after, known.creating, step.may)
				}
			}
		})
	}
}

// squat has a Sandbox of somebody else take the name of the claim's. It is about to go.
func (a *archive) squat() {
	a.Helper()
	squatter := makeSandbox(func(s *agentsv1beta1.Sandbox) {
		s.Name, s.UID, s.ResourceVersion, s.OwnerReferences, s.Finalizers = "claim", "squatter", "", nil, []string{"example.com/keep"}
	})
	if err := errors.Join(a.stored.Create(a.Context(), squatter), a.stored.Delete(a.Context(), squatter)); err != nil {
		a.Fatal(err)
	}
}
