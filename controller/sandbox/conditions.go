// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// Messages of conditions. Clients compare them to the letter.
const (
	messageExpired           = "Sandbox has expired"
	messageCurtailed         = ": the tier of its namespace lets none live longer"
	messageSuspending        = "Sandbox is suspending"
	messageSuspended         = "Sandbox is suspended"
	messagePodSucceeded      = "Pod completed successfully"
	messagePodFailed         = "Pod failed"
	messageNoPod             = "Pod does not exist"
	messagePodNotReady       = "Pod is Running but not Ready"
	messagePodReady          = "Pod is Ready"
	messageNoPodIPs          = "Pod is Ready but has no podIPs yet"
	messagePodGoing          = "Pod is being deleted; a new Pod is made once it is gone"
	messageService           = "; Service Exists"
	messageNoService         = "; Service does not exist"
	messageNotSuspended      = "Sandbox is not suspended"
	messagePodTerminating    = "Pod is terminating. Sandbox is suspending"
	messagePodTerminated     = "Pod has been terminated. Sandbox is suspended"
	messagePodNotOwned       = "Refused to delete pod because it is not owned by this sandbox"
	messagePodStateUnknown   = "Pod state is unknown. Sandbox suspension cannot be confirmed"
	messageSchedulingUnknown = "Pod state is unknown. Pod scheduling cannot be determined"
	messageSchedulingPending = "Pod has not reported a PodScheduled condition yet"
)

// A Pod's conditions may have any reason; of a Sandbox's the apiserver takes these only.
var reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// maxReason is how many bytes the apiserver takes as the reason of a condition.
const maxReason = 1024

// overdueAfter is how long after the end of its grace period a Pod that is still
// there is put down to a node that does not answer.
const overdueAfter = 30 * time.Second

// conditions computes the whole list from the scope, starting from the stored one so
// that a transition time moves only when a status does.
func conditions(s *scope) []metav1.Condition {
	list := slices.Clone(s.sandbox.Status.Conditions)
	set := func(c metav1.Condition) {
		c.ObservedGeneration = s.sandbox.Generation
		c.Message = clip.Message(c.Message)
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = metav1.NewTime(s.now)
		}
		meta.SetStatusCondition(&list, c)
	}
	set(readyCondition(s))
	set(suspendedCondition(s))
	if scheduled, present := scheduledCondition(s); present {
		set(scheduled)
	} else {
		meta.RemoveStatusCondition(&list, agentsv1beta1.ConditionPodScheduled)
	}
	if finished, present := finishedCondition(s); present {
		set(finished)
	} else if !s.expired() {
		meta.RemoveStatusCondition(&list, agentsv1beta1.ConditionFinished)
	}
	return stamped(list, s.sandbox.Generation)
}

// stamped says of every condition, also of those that were kept, which generation it
// speaks of.
func stamped(list []metav1.Condition, generation int64) []metav1.Condition {
	for i := range list {
		list[i].ObservedGeneration = generation
	}
	return list
}

// readyCondition takes the first answer that holds: what is worse comes first.
func readyCondition(s *scope) metav1.Condition {
	for _, check := range []func(*scope) (reason, message string, holds bool){
		isExpired, hasMultiplePods, hasProblems, isSuspended, isFailing, isFinished,
	} {
		if reason, message, holds := check(s); holds {
			return condition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
		}
	}
	return dependenciesCondition(s)
}

func isExpired(s *scope) (reason, message string, holds bool) {
	if !s.expired() {
		return "", "", false
	}
	return agentsv1beta1.ReasonSandboxExpired, expiredMessage(s), true
}

func hasMultiplePods(s *scope) (reason, message string, holds bool) {
	multiple, holds := s.problems.multiplePods()
	return agentsv1beta1.ReasonMultiplePods, multiple.Error(), holds
}

func hasProblems(s *scope) (reason, message string, holds bool) {
	if len(s.problems) == 0 {
		return "", "", false
	}
	return agentsv1beta1.ReasonReconcilerError, "Error seen: " + s.problems.message(), true
}

func isSuspended(s *scope) (reason, message string, holds bool) {
	message = messageSuspended
	if s.pod != nil || s.squatter != nil {
		message = messageSuspending
	}
	return agentsv1beta1.ReasonSandboxSuspended, message, s.suspended()
}

// isFinished holds for a Pod that ended by itself and that no other follows. One that ends because it is being
// deleted does not count: a claim would take it for the end of the work.
func isFinished(s *scope) (reason, message string, holds bool) {
	before := meta.IsStatusConditionTrue(s.sandbox.Status.Conditions, agentsv1beta1.ConditionFinished)
	if s.pod == nil || s.recreates() || (s.pod.DeletionTimestamp != nil && !before) {
		return "", "", false
	}
	switch s.pod.Status.Phase {
	case corev1.PodSucceeded:
		return agentsv1beta1.ReasonPodSucceeded, messagePodSucceeded, true
	case corev1.PodFailed:
		return agentsv1beta1.ReasonPodFailed, messagePodFailed, true
	default:
		return "", "", false
	}
}

func dependenciesCondition(s *scope) metav1.Condition {
	message, ready := podReadiness(s)
	switch {
	case s.service != nil:
		message += messageService
	case wantsService(s.sandbox):
		message += messageNoService
		ready = false
	}
	message += lostVolumes(s)
	if ready {
		return condition(agentsv1beta1.ConditionReady, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady, message)
	}
	return condition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, agentsv1beta1.ReasonDependenciesNotReady, message)
}

func podReadiness(s *scope) (message string, ready bool) {
	switch {
	case s.pod == nil:
		return messageNoPod, false
	case s.overdue():
		return fmt.Sprintf("Pod is being deleted but node %q does not confirm it; a new Pod is made once it is gone. "+
			"If the node is lost, delete the Node, or the Pod with --grace-period=0 --force", s.pod.Spec.NodeName), false
	case s.pod.DeletionTimestamp != nil: // whoever resumes a Sandbox must not be sent to the Pod that ends
		return messagePodGoing, false
	case s.pod.Status.Phase != corev1.PodRunning:
		return "Pod exists with phase: " + string(s.pod.Status.Phase), false
	case !podConditionTrue(s.pod, corev1.PodReady):
		return messagePodNotReady, false
	case len(s.pod.Status.PodIPs) == 0:
		return messageNoPodIPs, false
	default:
		return messagePodReady, true
	}
}

// overdueAt is when a Pod that is being deleted is put down to a lost node; zero for
// a Pod that is not.
func (s *scope) overdueAt() time.Time {
	if s.pod == nil || s.pod.DeletionTimestamp == nil || s.pod.Spec.NodeName == "" {
		return time.Time{}
	}
	return s.pod.DeletionTimestamp.Add(overdueAfter)
}

func (s *scope) overdue() bool {
	at := s.overdueAt()
	return !at.IsZero() && !s.now.Before(at)
}

func suspendedCondition(s *scope) metav1.Condition {
	status, reason, message := metav1.ConditionFalse, agentsv1beta1.ReasonNotSuspended, messageNotSuspended
	switch {
	case !s.suspended():
	case s.podUnknown, len(s.owned) > 1:
		status, reason, message = metav1.ConditionUnknown, agentsv1beta1.ReasonPodStateUnknown, messagePodStateUnknown
	case len(s.owned) == 1:
		reason, message = agentsv1beta1.ReasonPodTerminating, messagePodTerminating
	case s.squatter != nil:
		reason, message = agentsv1beta1.ReasonPodNotOwned, messagePodNotOwned
	default:
		status, reason, message = metav1.ConditionTrue, agentsv1beta1.ReasonPodTerminated, messagePodTerminated
	}
	return condition(agentsv1beta1.ConditionSuspended, status, reason, message)
}

// scheduledCondition mirrors the Pod's, with the Pod's own time.
func scheduledCondition(s *scope) (mirrored metav1.Condition, present bool) {
	unknown := condition(agentsv1beta1.ConditionPodScheduled, metav1.ConditionUnknown, agentsv1beta1.ReasonPodSchedulingUnknown, "")
	switch {
	case s.podUnknown:
		unknown.Message = messageSchedulingUnknown
		return unknown, true
	case s.pod == nil || s.expired():
		return metav1.Condition{}, false
	}
	reported := podCondition(s.pod, corev1.PodScheduled)
	if reported == nil {
		unknown.Message = messageSchedulingPending
		return unknown, true
	}
	reason := reported.Reason
	if !reasonForm.MatchString(reason) || len(reason) > maxReason {
		reason = agentsv1beta1.ReasonPodSchedulingUnknown
		if reported.Status == corev1.ConditionTrue {
			reason = agentsv1beta1.ReasonPodScheduled
		}
	}
	mirrored = condition(agentsv1beta1.ConditionPodScheduled, metav1.ConditionStatus(reported.Status), reason, reported.Message)
	mirrored.LastTransitionTime = reported.LastTransitionTime
	return mirrored, true
}

func finishedCondition(s *scope) (finished metav1.Condition, present bool) {
	reason, message, present := isFinished(s)
	return condition(agentsv1beta1.ConditionFinished, metav1.ConditionTrue, reason, message), present
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

func podConditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := podCondition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}
