// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// desiredStatus is the status that the pass has come to: which Sandbox, its addresses
// and Ready in one.
func desiredStatus(s *scope) extensionsv1beta1.SandboxClaimStatus {
	status := *s.claim.Status.DeepCopy()
	status.SandboxStatus = sandboxStatus(s)
	ready := readyCondition(s)
	ready.Type, ready.ObservedGeneration = agentsv1beta1.ConditionReady, s.claim.Generation
	ready.Message = clip.Message(ready.Message)
	ready.LastTransitionTime = metav1.NewTime(s.now)
	meta.SetStatusCondition(&status.Conditions, ready)
	mirrorFinished(s, &status)
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return status
}

// sandboxStatus names the Sandbox. An error leaves it as it was.
func sandboxStatus(s *scope) extensionsv1beta1.SandboxStatus {
	switch {
	case s.sandbox != nil:
		return extensionsv1beta1.SandboxStatus{Name: s.sandbox.Name, PodIPs: slices.Clone(s.sandbox.Status.PodIPs)}
	case s.missing, s.cleaned, s.skipped:
		return extensionsv1beta1.SandboxStatus{}
	default:
		return s.claim.Status.SandboxStatus
	}
}

func readyCondition(s *scope) metav1.Condition {
	switch {
	case s.expired():
		if s.skipped {
			return notReady(ReasonClaimExpired, messageExpiredSkipped)
		}
		if s.outlived() {
			return notReady(ReasonClaimExpired, messageExpired+messageCurtailed)
		}
		return notReady(ReasonClaimExpired, messageExpired)
	case s.problem != nil:
		return notReady(readyOf(s.problem))
	case s.waits:
		return notReady(ReasonSandboxNotReady, messageNotReady)
	case s.sandbox == nil:
		return notReady(ReasonSandboxMissing, messageMissing)
	default:
		return forwarded(s.sandbox)
	}
}

func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// forwarded is the Ready condition of the Sandbox in the words of a claim.
func forwarded(sandbox *agentsv1beta1.Sandbox) metav1.Condition {
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
	switch {
	case ready == nil:
		return notReady(ReasonSandboxNotReady, messageNotReady)
	case ready.Status != metav1.ConditionTrue && ready.Reason == agentsv1beta1.ReasonSandboxExpired:
		return notReady(ReasonSandboxExpired, messageSandboxExpired)
	default:
		return metav1.Condition{Status: ready.Status, Reason: ready.Reason, Message: ready.Message}
	}
}

// mirrorFinished copies the Finished condition with its time. Without a Sandbox it is
// kept for a claim that expired, whose end it explains, and while nobody knows whether
// there is one.
func mirrorFinished(s *scope, status *extensionsv1beta1.SandboxClaimStatus) {
	if s.sandbox == nil {
		if s.record.lost && !s.expired() {
			meta.RemoveStatusCondition(&status.Conditions, agentsv1beta1.ConditionFinished)
		}
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, agentsv1beta1.ConditionFinished)
	if finished := meta.FindStatusCondition(s.sandbox.Status.Conditions, agentsv1beta1.ConditionFinished); finished != nil {
		mirrored := *finished
		mirrored.ObservedGeneration = s.claim.Generation
		status.Conditions = append(status.Conditions, mirrored)
	}
}

func isReady(status extensionsv1beta1.SandboxClaimStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, agentsv1beta1.ConditionReady)
}
