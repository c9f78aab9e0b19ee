// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
)

// aged is a Sandbox that began that long before noon.
func aged(age time.Duration) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.CreationTimestamp = metav1.NewTime(noon().Add(-age)) }
}

func endsAt(after time.Duration) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = &metav1.Time{Time: noon().Add(after)} }
}

func giving(most time.Duration) config.Tier {
	return config.Tier{MaxLifetime: metav1.Duration{Duration: most}}
}

// inTier puts the scope into a tier with that longest life.
func inTier(most time.Duration) func(*scope) {
	return func(s *scope) { s.tier = giving(most) }
}

// under is a Pod that was made in a tier with that longest life.
func under(most time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { lifetime.Note(p, giving(most)) }
}

// ranFor is a Pod that was made that long before noon.
func ranFor(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon().Add(-age)) }
}

func TestATierEndsWhatItStarted(t *testing.T) {
	const hour = time.Hour
	expired := withCondition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, agentsv1beta1.ReasonSandboxExpired, "", noon())
	running := func(noted time.Duration) func(*scope) { return having(makePod("box", ownedByBox, under(noted))) }
	cases := map[string]struct {
		scope   *scope
		expired bool
		refused bool
		// wake is when the pass asks for the next because of an end, from noon on.
		wake time.Duration
	}{
		"without an end of its own":                    {scope: makeScope(makeSandbox(aged(hour)), inTier(hour), running(hour)), expired: true, refused: true},
		"with an end that came too late":               {scope: makeScope(makeSandbox(aged(hour), endsAt(hour)), inTier(hour), running(hour)), expired: true, refused: true},
		"a second too early":                           {scope: makeScope(makeSandbox(aged(hour-time.Second)), inTier(hour), running(hour)), wake: time.Second},
		"with an earlier end of its own":               {scope: makeScope(makeSandbox(aged(0), endsAt(time.Minute)), inTier(hour), running(hour)), wake: time.Minute},
		"in a tier that has become stricter":           {scope: makeScope(makeSandbox(aged(2*hour)), inTier(hour), running(3*hour)), wake: hour},
		"started when the tier had no bound":           {scope: makeScope(makeSandbox(aged(2*hour)), inTier(hour), running(0))},
		"in a tier without a bound":                    {scope: makeScope(makeSandbox(aged(2*hour)), running(hour))},
		"served to a claim":                            {scope: makeScope(makeSandbox(aged(2*hour), controlledBy("SandboxClaim")), inTier(hour), running(hour))},
		"waiting in a pool":                            {scope: makeScope(makeSandbox(aged(hour), controlledBy("SandboxWarmPool")), inTier(hour), running(hour)), expired: true, refused: true},
		"that somebody's own kind controls":            {scope: makeScope(makeSandbox(aged(2*hour), ownedByAWeb), inTier(hour), running(hour)), expired: true, refused: true},
		"that adopted a Pod which ran before":          {scope: makeScope(makeSandbox(aged(0)), inTier(hour), having(makePod("box", ownedByBox, under(hour), ranFor(hour)))), expired: true, refused: true},
		"served to a claim with a Pod that ran before": {scope: makeScope(makeSandbox(aged(0), controlledBy("SandboxClaim")), inTier(hour), having(makePod("box", ownedByBox, under(hour), ranFor(hour)))), expired: true, refused: true},
		"served to a claim, by clocks that are apart":  {scope: makeScope(makeSandbox(aged(hour), controlledBy("SandboxClaim")), inTier(hour), having(makePod("box", ownedByBox, under(hour), ranFor(hour+time.Minute))))},
		"suspended, since its policy may delete files": {scope: makeScope(makeSandbox(aged(2*hour), suspend), inTier(hour)), refused: true},
		"never started":                                {scope: makeScope(makeSandbox(aged(2*hour)), inTier(hour)), refused: true},
		"ended before, though its Pod is gone":         {scope: makeScope(makeSandbox(aged(2*hour), expired), inTier(hour)), expired: true, refused: true},
		"ended before, in a tier that gives more now":  {scope: makeScope(makeSandbox(aged(2*hour), expired), inTier(3*hour)), wake: hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.scope.expired(); got != tc.expired {
				t.Errorf("expired = %t, want %t", got, tc.expired)
			}
			if got := len(lifetimeRefusals(tc.scope)) > 0; got != tc.refused {
				t.Errorf("refused = %t, want %t: %v", got, tc.refused, lifetimeRefusals(tc.scope))
			}
			wake := time.Duration(0)
			if at := tc.scope.expiresAt(); noon().Before(at) {
				wake = at.Sub(noon())
			}
			if diff := cmp.Diff(tc.wake, wake); diff != "" {
				t.Errorf("the next pass (-want +got):\n%s", diff)
			}
		})
	}
}

func ownedByAWeb(s *agentsv1beta1.Sandbox) {
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: new(true)}}
}

func TestARefusalOfAnOldSandboxSaysWhatToDo(t *testing.T) {
	s := makeScope(makeSandbox(aged(2*time.Hour), endsAt(time.Hour)), inTier(time.Hour))
	want := `spec.shutdownTime: Invalid value: "2026-11-29T13:00:00Z": the tier of the namespace ends every Sandbox at most 1h0m0s ` +
		`after it began, which was at 2026-11-29T10:00:00Z: make a new one`
	if diff := cmp.Diff(want, sentence(lifetimeRefusals(s))); diff != "" {
		t.Errorf("the refusal (-want +got):\n%s", diff)
	}
}

// The members of a pool begin together. They end within the last tenth of what the tier gives, and not together.
func TestMembersOfAPoolEndOneAfterAnother(t *testing.T) {
	const hour = time.Hour
	ends := map[time.Time]bool{}
	for i := range 20 {
		member := makeSandbox(aged(0), controlledBy("SandboxWarmPool"))
		member.UID = types.UID(fmt.Sprintf("member-%d", i))
		end := makeScope(member, inTier(hour)).expiresAt()
		if left := end.Sub(noon()); left > hour || left < hour*9/10 {
			t.Errorf("member %d ends after %s, want within the last tenth of an hour", i, left)
		}
		ends[end] = true
	}
	if len(ends) < 15 {
		t.Errorf("20 members end at %d times", len(ends))
	}
}
