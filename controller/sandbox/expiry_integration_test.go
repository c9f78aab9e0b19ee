// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const expiredSay = "False/SandboxExpired: Sandbox has expired"

func shutDownAt(at time.Time, policy agentsv1beta1.ShutdownPolicy) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		s.Spec.ShutdownTime, s.Spec.ShutdownPolicy = &metav1.Time{Time: at.Truncate(time.Second)}, &policy
	}
}

func neverShutDown(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = nil }

// Under Retain the Pod and the Service go and the volumes stay; of the status only
// conditions are left, and then nothing is written any more.
func TestExpiryUnderRetainAndRevival(t *testing.T) {
	t.Parallel()
	for name, revive := range map[string]func(e *environment) func(*agentsv1beta1.Sandbox){
		"by clearing shutdownTime": func(*environment) func(*agentsv1beta1.Sandbox) { return neverShutDown },
		"by moving shutdownTime": func(e *environment) func(*agentsv1beta1.Sandbox) {
			return shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyRetain)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			pod := e.running(makeSandbox(withService(true), withVolume("data"), withClaimSpec,
				shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyRetain)))
			e.idle("box")
			e.jump(time.Hour)
			e.saysReady("box", expiredSay)
			e.Gone(boxName, &corev1.Service{})
			e.release(pod)
			sandbox := e.saysReady("box", expiredSay)
			e.Eventually("the status is conditions only", func() error {
				sandbox = e.sandbox("box")
				want := agentsv1beta1.SandboxStatus{Conditions: sandbox.Status.Conditions}
				return differs(want, sandbox.Status)
			})
			e.says("box", agentsv1beta1.ConditionPodScheduled, "absent")
			e.Gone(boxName, &corev1.Pod{})
			claimOf(e)
			e.idle("box")

			e.edit(revive(e))
			e.runPod("box")
			e.saysReady("box", "True/DependenciesReady: Pod is Ready; Service Exists")
		})
	}
}

func TestExpiryUnderDeleteEndsTheSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withService(true), shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyDelete)))
	e.jump(time.Hour)
	e.Gone(boxName, &agentsv1beta1.Sandbox{})
	e.Gone(boxName, &corev1.Service{})
	pod := &corev1.Pod{}
	e.Get("box", pod)
	if pod.DeletionTimestamp == nil {
		t.Error("the Pod lives on")
	}
}

func TestCreatedAfterItsTimeNeverStartsAPod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeSandbox(withService(true), shutDownAt(e.Clock.Now().Add(-time.Hour), agentsv1beta1.ShutdownPolicyRetain)))
	e.saysReady("box", expiredSay)
	e.says("box", agentsv1beta1.ConditionSuspended, notSuspended)
	e.idle("box")
	if diff := cmp.Diff(apiserver.Counts{"patch sandboxes/status": 1}, e.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// What the Pod came to is known after the expiry too.
func TestExpiryKeepsFinished(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyRetain)))
	e.report(pod, apiserver.Ended(0, "Completed"))
	before := e.says("box", agentsv1beta1.ConditionFinished, "True/PodSucceeded: Pod completed successfully")
	e.jump(time.Hour)
	e.saysReady("box", expiredSay)
	e.Eventually("the Pod is being deleted", func() error {
		if e.Exists("box", pod) {
			e.release(pod)
		}
		return differs(false, e.Exists("box", &corev1.Pod{}))
	})
	after := e.says("box", agentsv1beta1.ConditionFinished, "True/PodSucceeded: Pod completed successfully")
	if old, now := transition(t, before, agentsv1beta1.ConditionFinished), transition(t, after, agentsv1beta1.ConditionFinished); !old.Equal(now) {
		t.Errorf("Finished moved from %s to %s", old, now)
	}
	e.idle("box")
}

// differs is nil when both are the same.
func differs(want, got any) error {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return differenceError(diff)
	}
	return nil
}

type differenceError string

func (d differenceError) Error() string { return "(-want +got):\n" + string(d) }

// The apiserver shortens what somebody chose before, and no finalizer decides.
func TestAPodThatAsksForAYearToEndInIsHeldToMinutes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edits []func(*environment)
		end   func(*environment, *corev1.Pod)
	}{
		"at its expiry": {end: func(e *environment, _ *corev1.Pod) {
			e.edit(shutDownAt(time.Unix(0, 0), agentsv1beta1.ShutdownPolicyRetain))
		}},
		"at its expiry, when its user deleted it before": {end: func(e *environment, pod *corev1.Pod) {
			e.Delete(pod)
			e.edit(shutDownAt(time.Unix(0, 0), agentsv1beta1.ShutdownPolicyRetain))
		}},
		"at a suspension in a tier with a longest life": {
			edits: []func(*environment){bounded(time.Hour)}, end: func(e *environment, _ *corev1.Pod) { e.edit(suspend) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, tc.edits...)
			pod := e.running(makeSandbox(func(s *agentsv1beta1.Sandbox) {
				s.Spec.PodTemplate.Spec.TerminationGracePeriodSeconds = new(int64(365 * 24 * 60 * 60))
			}))
			tc.end(e, pod)
			e.Eventually("it has minutes to end in", func() error {
				if e.Get(pod.Name, pod); pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != longestGoodbye {
					return fmt.Errorf("it is deleted at %v", pod.DeletionTimestamp)
				}
				return nil
			})
		})
	}
}
