// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// Reasons and actions of Events.
const (
	eventPodRefused    = "PodRefused"
	eventQuotaExceeded = "QuotaExceeded"
	eventPodFailed     = "PodFailed"
	eventCurtailed     = "LifetimeCurtailed"
	eventStrayPod      = "PodWithoutSandbox"

	actionReconciling   = "Reconciling"
	actionCreatingPod   = "CreatingPod"
	actionRecreatingPod = "RecreatingPod"
	actionDeletingPod   = "DeletingPod"
)

// notice is one thing to tell whoever watches the Sandbox.
type notice struct{ reason, action, note string }

// eventsOf are the Events of a pass: only what the stored status does not say yet.
func eventsOf(s *scope, desired agentsv1beta1.SandboxStatus) []notice {
	ready := meta.FindStatusCondition(desired.Conditions, agentsv1beta1.ConditionReady)
	before := meta.FindStatusCondition(s.sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
	if ready == nil || (before != nil && before.Reason == ready.Reason && before.Message == ready.Message) {
		return nil
	}
	switch {
	case ready.Reason == agentsv1beta1.ReasonMultiplePods && (before == nil || before.Reason != ready.Reason):
		return []notice{{reason: agentsv1beta1.ReasonMultiplePods, action: actionReconciling, note: ready.Message}}
	case ready.Reason == agentsv1beta1.ReasonReconcilerError && s.podRefused:
		return []notice{{reason: refusalReason(ready.Message), action: actionCreatingPod, note: ready.Message}}
	case ready.Reason == agentsv1beta1.ReasonPodFailed && s.recreates():
		return []notice{{reason: eventPodFailed, action: actionRecreatingPod, note: ready.Message}}
	default:
		return nil
	}
}

// refusalReason tells a full quota, which time may empty, from a refusal.
func refusalReason(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return eventQuotaExceeded
	}
	return eventPodRefused
}

// tell publishes the Events of a pass.
func (r *Reconciler) tell(s *scope, desired agentsv1beta1.SandboxStatus) {
	for _, n := range eventsOf(s, desired) {
		r.recorder.Eventf(s.sandbox, nil, corev1.EventTypeWarning, n.reason, n.action, "%s", clip.Note(n.note))
	}
}
