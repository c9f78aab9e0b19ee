// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// say writes a condition as one line; an absent one is empty.
func say(list []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(list, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

func TestReady(t *testing.T) {
	cases := map[string]struct {
		scope *scope
		want  string
	}{
		"a Pod that is ready": {
			makeScope(makeSandbox(), having(makePod("box", ready))),
			"True/DependenciesReady: Pod is Ready",
		},
		"a Pod that is ready, with its Service": {
			makeScope(makeSandbox(withService(true)), having(makePod("box", ready)), withOwnService),
			"True/DependenciesReady: Pod is Ready; Service Exists",
		},
		"a Pod that is ready, with a Service that nobody asked for": {
			makeScope(makeSandbox(), having(makePod("box", ready)), withOwnService),
			"True/DependenciesReady: Pod is Ready; Service Exists",
		},
		"a Pod that is ready, without the Service that was asked for": {
			makeScope(makeSandbox(withService(true)), having(makePod("box", ready))),
			"False/DependenciesNotReady: Pod is Ready; Service does not exist",
		},
		"no Pod": {
			makeScope(makeSandbox()),
			"False/DependenciesNotReady: Pod does not exist",
		},
		"neither Pod nor Service": {
			makeScope(makeSandbox(withService(true))),
			"False/DependenciesNotReady: Pod does not exist; Service does not exist",
		},
		"a Pod that waits": {
			makeScope(makeSandbox(withService(true)), having(makePod("box", inPhase(corev1.PodPending))), withOwnService),
			"False/DependenciesNotReady: Pod exists with phase: Pending; Service Exists",
		},
		"a Pod that runs and is not ready": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodRunning)))),
			"False/DependenciesNotReady: Pod is Running but not Ready",
		},
		"a Pod that is ready and has no address": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodRunning),
				withPodCondition(corev1.PodReady, corev1.ConditionTrue, "", "")))),
			"False/DependenciesNotReady: Pod is Ready but has no podIPs yet",
		},
		"suspended with the Pod still there": {
			makeScope(makeSandbox(suspend), having(makePod("box", ready))),
			"False/SandboxSuspended: Sandbox is suspending",
		},
		"suspended with somebody else's Pod": {
			makeScope(makeSandbox(suspend), squatting(makePod("box"))),
			"False/SandboxSuspended: Sandbox is suspending",
		},
		"suspended": {
			makeScope(makeSandbox(suspend, withService(true)), withOwnService),
			"False/SandboxSuspended: Sandbox is suspended",
		},
		"a Pod that succeeded": {
			makeScope(makeSandbox(withService(true)), having(makePod("box", inPhase(corev1.PodSucceeded))), withOwnService),
			"False/PodSucceeded: Pod completed successfully",
		},
		"a Pod that failed": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodFailed)))),
			"False/PodFailed: Pod failed",
		},
		"a Pod that ends because it is deleted": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodSucceeded), deletedAt(noon())))),
			"False/DependenciesNotReady: Pod is being deleted; a new Pod is made once it is gone",
		},
		"an error hides the Pod's end": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodFailed))), failing(errors.New("no service"))),
			"False/ReconcilerError: Error seen: no service",
		},
		"an error hides the suspension": {
			makeScope(makeSandbox(suspend), failing(errors.New("no claim"))),
			"False/ReconcilerError: Error seen: no claim",
		},
		"several errors come together": {
			makeScope(makeSandbox(), failing(errors.New("no claim"), errors.New("no service"))),
			"False/ReconcilerError: Error seen: no claim\nno service",
		},
		"more Pods than one hide other errors": {
			makeScope(makeSandbox(), having(makePod("box"), makePod("twin")), failing(errors.New("no claim"), multiplePodsError{count: 2})),
			"False/MultiplePods: multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod",
		},
		"expiry hides everything": {
			makeScope(makeSandbox(expire, suspend), having(makePod("box", ready)), failing(errors.New("no claim"))),
			"False/SandboxExpired: Sandbox has expired",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(conditions(tc.scope), agentsv1beta1.ConditionReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadyOfAPodThatDoesNotGo(t *testing.T) {
	cases := map[string]struct {
		scope *scope
		want  string
	}{
		"a Pod on a node that does not answer": {
			makeScope(makeSandbox(), having(makePod("box", ready, onNode, deletedAt(noon().Add(-overdueAfter))))),
			`False/DependenciesNotReady: Pod is being deleted but node "n1" does not confirm it; a new Pod is made once it is gone. ` +
				"If the node is lost, delete the Node, or the Pod with --grace-period=0 --force",
		},
		"a Pod within its grace period": {
			makeScope(makeSandbox(), having(makePod("box", ready, onNode, deletedAt(noon())))),
			"False/DependenciesNotReady: Pod is being deleted; a new Pod is made once it is gone",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(conditions(tc.scope), agentsv1beta1.ConditionReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspended(t *testing.T) {
	cases := map[string]struct {
		scope *scope
		want  string
	}{
		"a running Sandbox": {
			makeScope(makeSandbox(), having(makePod("box"))), "False/NotSuspended: Sandbox is not suspended",
		},
		"a running Sandbox in trouble": {
			makeScope(makeSandbox(), failing(errors.New("no claim"))), "False/NotSuspended: Sandbox is not suspended",
		},
		"the Pod is on its way out": {
			makeScope(makeSandbox(suspend), having(makePod("box", deletedAt(noon())))),
			"False/PodTerminating: Pod is terminating. Sandbox is suspending",
		},
		"the Pod is gone": {
			makeScope(makeSandbox(suspend)), "True/PodTerminated: Pod has been terminated. Sandbox is suspended",
		},
		"somebody else's Pod is in the place": {
			makeScope(makeSandbox(suspend), squatting(makePod("box"))),
			"False/PodNotOwned: Refused to delete pod because it is not owned by this sandbox",
		},
		"nobody could say whether there is a Pod": {
			makeScope(makeSandbox(suspend), func(s *scope) { s.podUnknown = true }),
			"Unknown/PodStateUnknown: Pod state is unknown. Sandbox suspension cannot be confirmed",
		},
		"there are more Pods than one": {
			makeScope(makeSandbox(suspend), having(makePod("box"), makePod("twin")), failing(multiplePodsError{count: 2})),
			"Unknown/PodStateUnknown: Pod state is unknown. Sandbox suspension cannot be confirmed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(conditions(tc.scope), agentsv1beta1.ConditionSuspended)); diff != "" {
				t.Errorf("Suspended (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodScheduled(t *testing.T) {
	scheduled := func(status corev1.ConditionStatus, reason, message string) *corev1.Pod {
		return makePod("box", withPodCondition(corev1.PodScheduled, status, reason, message))
	}
	stored := withCondition(agentsv1beta1.ConditionPodScheduled, metav1.ConditionTrue, "PodScheduled", "", noon())
	cases := map[string]struct {
		scope *scope
		want  string
	}{
		"no Pod has no such condition": {scope: makeScope(makeSandbox(stored))},
		"an expired Sandbox has none": {
			scope: makeScope(makeSandbox(stored, expire),
				having(scheduled(corev1.ConditionTrue, "", ""))),
		},
		"a Pod that cannot be placed says why": {
			makeScope(makeSandbox(), having(scheduled(corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available"))),
			"False/Unschedulable: 0/1 nodes are available",
		},
		"a placed Pod without a reason": {
			makeScope(makeSandbox(), having(scheduled(corev1.ConditionTrue, "", ""))), "True/PodScheduled: ",
		},
		"an unplaced Pod without a reason": {
			makeScope(makeSandbox(), having(scheduled(corev1.ConditionFalse, "", "later"))), "False/PodSchedulingUnknown: later",
		},
		"a reason that no condition may have": {
			makeScope(makeSandbox(), having(scheduled(corev1.ConditionFalse, "no room!", "later"))), "False/PodSchedulingUnknown: later",
		},
		"a reason that is too long": {
			makeScope(makeSandbox(), having(scheduled(corev1.ConditionTrue, strings.Repeat("a", maxReason+1), ""))), "True/PodScheduled: ",
		},
		"a Pod that says nothing yet": {
			makeScope(makeSandbox(), having(makePod("box"))),
			"Unknown/PodSchedulingUnknown: Pod has not reported a PodScheduled condition yet",
		},
		"a Pod that could not be read": {
			makeScope(makeSandbox(), func(s *scope) { s.podUnknown = true }),
			"Unknown/PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(conditions(tc.scope), agentsv1beta1.ConditionPodScheduled)); diff != "" {
				t.Errorf("PodScheduled (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFinished(t *testing.T) {
	stored := withCondition(agentsv1beta1.ConditionFinished, metav1.ConditionTrue, "PodFailed", "Pod failed", noon())
	cases := map[string]struct {
		scope *scope
		want  string
	}{
		"a Pod that succeeded": {
			makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodSucceeded)))), "True/PodSucceeded: Pod completed successfully",
		},
		"a Pod that failed":                                {makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodFailed)))), "True/PodFailed: Pod failed"},
		"a Pod that runs":                                  {scope: makeScope(makeSandbox(stored), having(makePod("box", ready)))},
		"a Pod that ends because it is deleted":            {scope: makeScope(makeSandbox(suspend), having(makePod("box", inPhase(corev1.PodSucceeded), deletedAt(noon()))))},
		"a Pod that ended and is then deleted":             {makeScope(makeSandbox(stored, suspend), having(makePod("box", inPhase(corev1.PodFailed), deletedAt(noon())))), "True/PodFailed: Pod failed"},
		"a Pod that ended and is gone":                     {scope: makeScope(makeSandbox(stored))},
		"expiry keeps it when the Pod is gone":             {makeScope(makeSandbox(stored, expire)), "True/PodFailed: Pod failed"},
		"expiry of a Sandbox that never ended has none":    {scope: makeScope(makeSandbox(expire))},
		"expiry finds out about a Pod that ended just now": {makeScope(makeSandbox(expire), having(makePod("box", inPhase(corev1.PodFailed)))), "True/PodFailed: Pod failed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, say(conditions(tc.scope), agentsv1beta1.ConditionFinished)); diff != "" {
				t.Errorf("Finished (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTransitionTimesMoveOnlyWithTheStatus(t *testing.T) {
	before := noon().Add(-time.Hour)
	suspendedBefore := withCondition(agentsv1beta1.ConditionSuspended, metav1.ConditionFalse,
		agentsv1beta1.ReasonNotSuspended, messageNotSuspended, before)
	cases := map[string]struct {
		scope *scope
		want  time.Time
	}{
		"NotSuspended to PodTerminating stays": {makeScope(makeSandbox(suspendedBefore, suspend), having(makePod("box", deletedAt(noon())))), before},
		"NotSuspended to PodTerminated moves":  {makeScope(makeSandbox(suspendedBefore, suspend)), noon()},
		"a Pod that is made again stays":       {makeScope(makeSandbox(suspendedBefore)), before},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := meta.FindStatusCondition(conditions(tc.scope), agentsv1beta1.ConditionSuspended)
			if !got.LastTransitionTime.Time.Equal(tc.want) {
				t.Errorf("lastTransitionTime = %s, want %s", got.LastTransitionTime, tc.want)
			}
		})
	}
}

// A status with a longer message would be refused whole.
func TestNoMessageIsLongerThanTheApiserverTakes(t *testing.T) {
	const most = 32 << 10
	long := strings.Repeat("x", most+1)
	pod := makePod("box", ready, withPodCondition(corev1.PodScheduled, corev1.ConditionTrue, "", long))
	going := func(s *scope) {
		names := make([]string, 200)
		for i := range names {
			names[i] = fmt.Sprintf("%0200d", i)
		}
		withVolume(names...)(s.sandbox)
		s.claims = map[string]*corev1.PersistentVolumeClaim{}
		for _, name := range claimNames(s.sandbox) {
			s.claims[name] = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &metav1.Time{Time: noon()}}}
		}
	}
	for name, s := range map[string]*scope{
		"of many volumes": makeScope(makeSandbox(), having(pod), going),
		"of an error":     makeScope(makeSandbox(), having(pod), failing(errors.New(long))),
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range conditions(s) {
				if (c.Type != agentsv1beta1.ConditionSuspended) != (len(c.Message) == most) {
					t.Errorf("the message of %s has %d bytes, at most %d are taken", c.Type, len(c.Message), most)
				}
			}
		})
	}
}

func TestEveryConditionSpeaksOfTheGeneration(t *testing.T) {
	finished := withCondition(agentsv1beta1.ConditionFinished, metav1.ConditionTrue, "PodFailed", "Pod failed", noon())
	got := conditions(makeScope(makeSandbox(finished, expire)))
	if len(got) != 3 {
		t.Errorf("there are %d conditions, want Ready, Suspended and Finished", len(got))
	}
	for _, c := range got {
		if c.ObservedGeneration != 7 {
			t.Errorf("%s has observedGeneration %d, want 7", c.Type, c.ObservedGeneration)
		}
	}
}
