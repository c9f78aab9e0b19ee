// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// scope is everything that one pass over a Sandbox knows. gather fills the first
// part; the phases fill the rest, in the order of the fields.
type scope struct {
	// sandbox is the Sandbox as the cache has it. No phase changes it.
	sandbox *agentsv1beta1.Sandbox
	// now is the time of the pass.
	now time.Time
	// tierLabel is the tier label of the namespace; empty without one.
	tierLabel string
	// tier is the tier of the namespace; the zero tier when the label names none.
	tier config.Tier
	// owned are the Pods that this Sandbox controls.
	owned []*corev1.Pod
	// squatter is the Pod in the place of ours that this Sandbox does not control: the
	// one that the annotation pod-name names, or else the one of the Sandbox's name.
	squatter *corev1.Pod
	// claims are the volume claims in the places of ours, by name; those that do not
	// exist are missing.
	claims map[string]*corev1.PersistentVolumeClaim
	// foundService is the Service of the Sandbox's name, whoever made it.
	foundService *corev1.Service

	// choice is how the Pod is kept apart. Set by phaseIsolation.
	choice isolation.Choice
	// isolated is true when the NetworkPolicies of the choice are in place, so that a
	// Pod may be made. Set by phaseIsolation.
	isolated bool
	// volumesReady is true when every volume claim is there, is ours and stays. Set by
	// phaseVolumes.
	volumesReady bool
	// pod is the Pod of this Sandbox. Set by phasePod.
	pod *corev1.Pod
	// restartAt is when a new Pod follows the failed one; zero when none does. Set by
	// phasePod.
	restartAt time.Time
	// podUnknown is true when it could not be found out whether there is a Pod. Set by
	// phasePod.
	podUnknown bool
	// podRefused is true when a Pod was asked for and refused. Set by phasePod.
	podRefused bool
	// service is the Service of this Sandbox. Set by phaseService.
	service *corev1.Service
	// announced is true when the stored status says already that the Sandbox has
	// expired, so that its Pod and Service may go. Set by phaseExpiry.
	announced bool

	// superseded is true when this pass saw a state that is no more, so that it has
	// nothing to say. Set by phaseExpiry.
	superseded bool

	// problems are the errors of the phases.
	problems problems
	// wake is when the next pass is due at the latest; zero for never.
	wake time.Time
}

// suspended says whether the Sandbox is to have no Pod.
func (s *scope) suspended() bool {
	return s.sandbox.Spec.OperatingMode == agentsv1beta1.OperatingModeSuspended
}

// wakeAt asks for a pass at that time, or at an earlier one that was asked for.
func (s *scope) wakeAt(at time.Time) {
	if s.wake.IsZero() || at.Before(s.wake) {
		s.wake = at
	}
}

// readyReason is the reason of the Ready condition in the stored status.
func (s *scope) readyReason() string {
	if ready := meta.FindStatusCondition(s.sandbox.Status.Conditions, agentsv1beta1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// trackedPodName is the name under which a Pod of this Sandbox is looked for first.
func trackedPodName(sandbox *agentsv1beta1.Sandbox) string {
	if name := sandbox.Annotations[keys.PodName]; name != "" {
		return name
	}
	return sandbox.Name
}

// subject is what the isolation of the Sandbox rests on.
func (s *scope) subject() isolation.Subject {
	return isolation.Subject{
		TierLabel: s.tierLabel,
		Profile:   s.sandbox.Annotations[keys.EgressProfile],
		Bare:      metav1.GetControllerOf(s.sandbox) == nil,
		Service:   wantsService(s.sandbox),
	}
}

// templateName is the name of the template that the Sandbox was made from; empty for
// none.
func (s *scope) templateName() string {
	return s.sandbox.Annotations[keys.SandboxTemplateRef]
}

func wantsService(sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.Spec.Service != nil && *sandbox.Spec.Service
}
