// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// everyNth write of a life is disturbed in a short run, each in another way; a long run
// disturbs each in every way.
const everyNth = 4

// Whichever write of the controller fails, and however it does, even if the controller
// is killed there and another one goes on, each stage of a life is reached, nothing
// is made twice, and the end is that of an undisturbed life.
func TestALifeInWhichAnyWriteFails(t *testing.T) {
	t.Parallel()
	want := live(t, nil)
	long := apiserver.LongRun()
	ways := slices.Sorted(maps.Keys(apiserver.Interruptions(1)))
	for nth := 1; nth <= want.writes.Total(); nth++ {
		for i, way := range ways {
			if !long && (nth%everyNth != 1 || i != nth/everyNth%len(ways)) {
				continue
			}
			t.Run(fmt.Sprintf("write %d: %s", nth, way), func(t *testing.T) {
				t.Parallel()
				interruption := apiserver.Interruptions(nth)[way]
				got := live(t, interruption)
				t.Logf("disturbed: %q", interruption.Hit()) // empty when this life took fewer writes than the first
				if err := differs(want.state, got.state); err != nil {
					t.Errorf("the end after %q came to grief is another one: %v", interruption.Hit(), err)
				}
				for what, due := range (apiserver.Counts{"create persistentvolumeclaims": 1, "create pods": 3, "create services": 2}) {
					if got.writes[what] > due {
						t.Errorf("%s %d times after %q came to grief, want %d", what, got.writes[what], interruption.Hit(), due)
					}
				}
				if most := want.writes.Total() + 2*writesPerStep; got.writes.Total() > most {
					t.Errorf("%d writes, at most %d are due:\n%s", got.writes.Total(), most, got.writes)
				}
			})
		}
	}
}

// stage is a part of a life: a wish and what comes of it.
type stage struct {
	wish  func(*agentsv1beta1.Sandbox)
	ready string
	pod   bool
}

func stages() []stage {
	return []stage{
		{suspend, suspendedSay, false},
		{resume, readyAndService, true},
		{withPodMetadata(map[string]string{"team": "b"}, nil), readyAndService, true},
		{shutDownAt(noon().Add(-24*time.Hour), agentsv1beta1.ShutdownPolicyRetain), expiredSay, false},
		{neverShutDown, readyAndService, true},
		{withService(false), readySay, true},
	}
}

// live takes a Sandbox through its life. When the controller is killed, another follows.
func live(t *testing.T, interruption *apiserver.Interruption) ending {
	t.Helper()
	var edits []func(*environment)
	if interruption != nil {
		edits = append(edits, passing(interruption.Wrap))
	}
	e := newEnvironment(t, edits...)
	e.ServeKubelet("node-1")
	e.Create(makeSandbox(withService(true), withVolume("data"), withClaimSpec))
	follow := func() {
		if interruption != nil && interruption.Dead() && !interruption.Heir() {
			e.restart()
		}
	}
	reach := func(s stage) {
		e.Eventually("the stage is reached", func() error {
			follow()
			return e.reached(s)
		})
	}
	reach(stage{ready: readyAndService, pod: true})
	for _, s := range stages() {
		e.edit(s.wish)
		reach(s)
	}
	e.Eventually("a pass has nothing more to do", func() error {
		follow()
		before := e.Writes()
		if _, err := e.reconciler.Reconcile(t.Context(), e.request(boxName)); err != nil {
			return err
		}
		return differs(before, e.Writes())
	})
	return ending{state: e.state(), writes: e.Writes()}
}

// reached says what is missing of a stage.
func (e *environment) reached(s stage) error {
	sandbox, pod := e.sandbox(boxName), &corev1.Pod{}
	if err := differs(s.ready, sayCondition(sandbox, agentsv1beta1.ConditionReady)); err != nil {
		return err
	}
	if err := differs(sandbox.Generation, sandbox.Status.Conditions[0].ObservedGeneration); err != nil {
		return err
	}
	if exists := e.Exists(boxName, pod); exists != s.pod {
		return fmt.Errorf("there is a Pod: %t, want %t", exists, s.pod)
	}
	if s.ready == expiredSay && e.Exists(boxName, &corev1.Service{}) {
		return errors.New("an expired Sandbox has a Service")
	}
	if s.pod && pod.Labels["team"] != sandbox.Spec.PodTemplate.ObjectMeta.Labels["team"] {
		return errors.New("the Pod does not have the labels of the podTemplate")
	}
	if _, tracked := sandbox.Annotations[keys.PodName]; s.ready == suspendedSay && tracked {
		return errors.New("a suspended Sandbox tracks a Pod")
	}
	return nil
}
