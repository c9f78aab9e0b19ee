// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	readySay      = "True/DependenciesReady: Pod is Ready"
	pendingSay    = "False/DependenciesNotReady: Pod exists with phase: Pending"
	noPodSay      = "False/DependenciesNotReady: Pod does not exist"
	notSuspended  = "False/NotSuspended: Sandbox is not suspended"
	terminating   = "False/PodTerminating: Pod is terminating. Sandbox is suspending"
	terminated    = "True/PodTerminated: Pod has been terminated. Sandbox is suspended"
	suspendingSay = "False/SandboxSuspended: Sandbox is suspending"
	suspendedSay  = "False/SandboxSuspended: Sandbox is suspended"
)

func resume(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeRunning }

// transition is when a condition last changed its status.
func transition(t *testing.T, sandbox *agentsv1beta1.Sandbox, kind string) time.Time {
	t.Helper()
	c := meta.FindStatusCondition(sandbox.Status.Conditions, kind)
	if c == nil {
		t.Fatalf("Sandbox %s has no condition %s", sandbox.Name, kind)
	}
	return c.LastTransitionTime.Time
}

// A bare Sandbox goes through what its Pod goes through, in the words of the contract.
func TestReadyFollowsThePod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeSandbox())
	pod := &corev1.Pod{}
	e.appears("box", pod)
	e.saysReady("box", pendingSay)
	e.says("box", agentsv1beta1.ConditionPodScheduled,
		"Unknown/PodSchedulingUnknown: Pod has not reported a PodScheduled condition yet")
	e.says("box", agentsv1beta1.ConditionSuspended, notSuspended)

	if err := e.kubelet.Bind(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	e.report(pod, func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })
	e.saysReady("box", "False/DependenciesNotReady: Pod is Running but not Ready")
	e.says("box", agentsv1beta1.ConditionPodScheduled, "True/PodScheduled: ")
	e.report(pod, func(s *corev1.PodStatus) { apiserver.SetCondition(s, corev1.PodReady, corev1.ConditionTrue) })
	e.saysReady("box", "False/DependenciesNotReady: Pod is Ready but has no podIPs yet")
	e.report(pod, apiserver.Running)
	sandbox := e.saysReady("box", readySay)

	want := agentsv1beta1.SandboxStatus{
		LabelSelector: keys.SandboxNameHash + "=" + keys.NameHash("box"), PodIPs: []string{"10.1.2.3"}, NodeName: "node-1",
	}
	sandbox.Status.Conditions = nil
	if diff := cmp.Diff(want, sandbox.Status); diff != "" {
		t.Errorf("status without conditions (-want +got):\n%s", diff)
	}
	if got := sandbox.Annotations[keys.PodName]; got != "box" {
		t.Errorf("annotation %s = %q", keys.PodName, got)
	}
	if len(sandbox.Finalizers) != 0 {
		t.Errorf("finalizers: %v", sandbox.Finalizers)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{controllerRef(sandbox)}, pod.OwnerReferences); diff != "" {
		t.Errorf("owners of the Pod (-want +got):\n%s", diff)
	}
	e.idle("box")
}

// Suspension keeps selector and Service, follows the Pod until it is gone, and a
// transition time moves only with a status.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withService(true), withVolume("data"), withClaimSpec))
	running := e.sandbox("box")
	e.Clock.Jump(time.Hour) // so that a time that moves is seen
	e.edit(suspend)
	e.saysReady("box", suspendingSay)
	suspending := e.says("box", agentsv1beta1.ConditionSuspended, terminating)
	if before, after := transition(t, running, agentsv1beta1.ConditionSuspended), transition(t, suspending, agentsv1beta1.ConditionSuspended); !before.Equal(after) {
		t.Errorf("False to False moved Suspended from %s to %s", before, after)
	}
	if suspending.Status.NodeName != "node-1" || len(suspending.Status.PodIPs) == 0 {
		t.Errorf("a Pod that is ending is in the status still: %+v", suspending.Status)
	}
	e.release(pod)
	e.saysReady("box", suspendedSay)
	suspended := e.says("box", agentsv1beta1.ConditionSuspended, terminated)
	if before, after := transition(t, running, agentsv1beta1.ConditionSuspended), transition(t, suspended, agentsv1beta1.ConditionSuspended); !after.After(before) {
		t.Errorf("False to True left Suspended at %s", after)
	}
	if _, tracked := suspended.Annotations[keys.PodName]; tracked {
		t.Error("a suspended Sandbox tracks a Pod")
	}
	want := agentsv1beta1.SandboxStatus{
		Service: "box", ServiceFQDN: "box." + e.Namespace + ".svc.cluster.local",
		LabelSelector: keys.SandboxNameHash + "=" + keys.NameHash("box"),
	}
	suspended.Status.Conditions = nil
	if diff := cmp.Diff(want, suspended.Status); diff != "" {
		t.Errorf("status of the suspended Sandbox (-want +got):\n%s", diff)
	}
	e.says("box", agentsv1beta1.ConditionPodScheduled, "absent")
	for name, object := range map[string]interface{ GetDeletionTimestamp() *metav1.Time }{
		"the Service": serviceOf(e), "the volume": claimOf(e),
	} {
		if object.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted", name)
		}
	}
	e.idle("box")

	e.edit(resume)
	again := e.runPod("box")
	if again.UID == pod.UID {
		t.Error("the Pod after the resume is the one before")
	}
	e.saysReady("box", "True/DependenciesReady: Pod is Ready; Service Exists")
	e.says("box", agentsv1beta1.ConditionSuspended, notSuspended)
}

// A Sandbox is suspended only once the Pod object is gone, however long somebody
// holds it.
func TestSuspensionWaitsForAPodHeldByAFinalizer(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox())
	before := pod.DeepCopy()
	pod.Finalizers = []string{"example.com/hold"}
	e.patch(pod, before)
	e.edit(suspend)
	e.says("box", agentsv1beta1.ConditionSuspended, terminating)
	e.release(pod)
	e.Get("box", pod)
	e.jump(time.Minute)
	e.Eventually("the message names the lost node", func() error {
		if got := e.sandbox("box"); sayCondition(got, agentsv1beta1.ConditionSuspended) != terminating {
			return errors.New(sayCondition(got, agentsv1beta1.ConditionSuspended))
		}
		return nil
	})
	e.idle("box")
	before = pod.DeepCopy()
	pod.Finalizers = nil
	e.patch(pod, before)
	e.says("box", agentsv1beta1.ConditionSuspended, terminated)
}

func TestSuspensionBlockedByAForeignPod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stranger := makePod("box", withContainer)
	e.Create(stranger)
	e.Create(makeSandbox(suspend, withService(true)))
	e.saysReady("box", suspendingSay)
	sandbox := e.says("box", agentsv1beta1.ConditionSuspended,
		"False/PodNotOwned: Refused to delete pod because it is not owned by this sandbox")
	want := agentsv1beta1.SandboxStatus{
		Service: "box", ServiceFQDN: "box." + e.Namespace + ".svc.cluster.local",
		LabelSelector: keys.SandboxNameHash + "=" + keys.NameHash("box"),
	}
	sandbox.Status.Conditions = nil
	if diff := cmp.Diff(want, sandbox.Status); diff != "" {
		t.Errorf("status without conditions (-want +got):\n%s", diff)
	}
	e.idle("box")
	e.untouched(stranger, &corev1.Pod{})
	e.Delete(stranger)
	e.says("box", agentsv1beta1.ConditionSuspended, terminated)
}

func TestCreatedSuspendedNeverStartsAPod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeSandbox(suspend, withService(true), withVolume("data"), withClaimSpec))
	e.saysReady("box", suspendedSay)
	e.says("box", agentsv1beta1.ConditionSuspended, terminated)
	serviceOf(e)
	claimOf(e)
	if n := e.Writes()["create pods"]; n != 0 {
		t.Errorf("%d Pods were made", n)
	}
	e.idle("box")
}

// A Pod that ended by itself stays.
func TestFinishedPodStays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exitCode int32
		want     string
	}{
		"with success": {0, "PodSucceeded: Pod completed successfully"},
		"with failure": {3, "PodFailed: Pod failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			pod := e.running(makeSandbox())
			e.report(pod, apiserver.Ended(tc.exitCode, "Error"))
			e.saysReady("box", "False/"+tc.want)
			e.says("box", agentsv1beta1.ConditionFinished, "True/"+tc.want)
			e.jump(time.Hour)
			e.idle("box")
			e.Get("box", &corev1.Pod{})
			if n := e.Writes()["create pods"]; n != 1 {
				t.Errorf("%d Pods were made, want 1", n)
			}
		})
	}
}

// With two Pods of its own a Sandbox neither chooses nor makes one, and says so once.
func TestMultiplePods(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withService(true)))
	second := makePod("second", withContainer, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{controllerRef(e.sandbox("box"))}
	})
	e.Create(second)
	e.saysReady("box", "False/MultiplePods: multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod")
	if got := e.sandbox("box").Status.Service; got != "box" {
		t.Errorf("the Service was not left alone: status.service = %q", got)
	}
	e.idle("box")
	e.expectEvents("MultiplePods", 1)
	e.Delete(second)
	e.saysReady("box", "True/DependenciesReady: Pod is Ready; Service Exists")
}

// An Event is told once the status says the same. Otherwise each try would tell it again.
func TestAnEventIsToldOnceHoweverOftenItsStatusFails(t *testing.T) {
	t.Parallel()
	failing := &apiserver.Failing{Method: http.MethodPatch, Path: "/sandboxes/box/status"}
	e := newEnvironment(t, passing(failing.Wrap), func(e *environment) { e.Told = &apiserver.Told{} })
	e.running(makeSandbox())
	failing.Next(3)
	e.Create(makePod("second", withContainer, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{controllerRef(e.sandbox("box"))}
	}))
	said := "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod"
	e.saysReady("box", "False/MultiplePods: "+said)
	e.Eventually("the Event is told", func() error { return differs(true, len(e.Told.All()) > 0) })
	e.stop()
	if diff := cmp.Diff([]string{"Warning MultiplePods: " + said}, e.Told.All()); diff != "" || failing.Left() > 0 {
		t.Errorf("%d writes have yet to fail; Events (-want +got):\n%s", failing.Left(), diff)
	}
}

// A Pod deleted behind our back is made again; its end does not look like a
// suspension.
func TestPodDeletedBehindOurBackIsMadeAgain(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox())
	before := e.sandbox("box")
	e.Clock.Jump(10 * time.Second) // so that a time that moves is seen
	e.Delete(pod)
	e.idle("box") // no second Pod while the first one is ending
	e.release(pod)
	e.Eventually("there is another Pod", func() error {
		var now corev1.Pod
		if !e.Exists("box", &now) || now.UID == pod.UID {
			return errors.New("not yet")
		}
		return nil
	})
	e.runPod("box")
	after := e.saysReady("box", readySay)
	if old, now := transition(t, before, agentsv1beta1.ConditionSuspended), transition(t, after, agentsv1beta1.ConditionSuspended); !old.Equal(now) {
		t.Errorf("Suspended moved from %s to %s", old, now)
	}
	if n := e.Writes()["create pods"]; n != 2 {
		t.Errorf("%d Pods were made, want 2", n)
	}
}

// A Pod whose node does not confirm its deletion is waited for, and the message says
// what to do.
func TestPodOnALostNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox())
	e.Delete(pod)
	e.Get("box", pod)
	e.jump(time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second + overdueAfter + time.Second)
	e.saysReady("box", `False/DependenciesNotReady: Pod is being deleted but node "node-1" does not confirm it; a new Pod is made once it is gone. `+
		"If the node is lost, delete the Node, or the Pod with --grace-period=0 --force")
	e.idle("box")
	e.release(pod)
	e.runPod("box")
	e.saysReady("box", readySay)
}

// expectEvents waits until there are so many warnings of a reason.
func (e *environment) expectEvents(reason string, want int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("there are %d Events %s", want, reason), func() error {
		var list corev1.EventList
		if err := e.Client.List(e.Context(), &list, inNamespace(e.Namespace)); err != nil {
			return err
		}
		got := 0
		for i := range list.Items {
			if list.Items[i].Reason == reason && list.Items[i].Type == corev1.EventTypeWarning {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
}
