// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// expiry is when a claim's time is up; the zero time for never. finished is the
// Finished condition of its Sandbox, or the one that the claim remembers; nil when
// its Pod has not ended.
func expiry(claim *extensionsv1beta1.SandboxClaim, finished *metav1.Condition) time.Time {
	lifecycle := claim.Spec.Lifecycle
	if lifecycle == nil {
		return time.Time{}
	}
	var at time.Time
	if lifecycle.ShutdownTime != nil {
		at = lifecycle.ShutdownTime.Time
	}
	if lifecycle.TTLSecondsAfterFinished != nil && finished != nil && finished.Status == metav1.ConditionTrue {
		ttl := time.Duration(*lifecycle.TTLSecondsAfterFinished) * time.Second
		at = earlier(at, finished.LastTransitionTime.Add(ttl))
	}
	return at
}

// bindDeadline is when a claim that has no Sandbox gives up; the zero time for never.
func bindDeadline(claim *extensionsv1beta1.SandboxClaim, byDefault time.Duration) time.Time {
	timeout := byDefault
	if own, err := time.ParseDuration(claim.Annotations[keys.BindTimeout]); err == nil && own > 0 {
		timeout = own
	}
	if timeout <= 0 {
		return time.Time{}
	}
	return claim.CreationTimestamp.Add(timeout)
}

// earlier is the earlier of two times of which the zero one means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// shutdownPolicy is what is done when the time is up.
func shutdownPolicy(claim *extensionsv1beta1.SandboxClaim) extensionsv1beta1.ClaimShutdownPolicy {
	if claim.Spec.Lifecycle == nil || claim.Spec.Lifecycle.ShutdownPolicy == "" {
		return extensionsv1beta1.ClaimShutdownPolicyRetain
	}
	return claim.Spec.Lifecycle.ShutdownPolicy
}

// wasReady says whether the claim was Ready once, so that the Sandbox it had must not
// be replaced silently. Each sign may be missing: the times are optional, and Ready
// tells of now.
func wasReady(claim *extensionsv1beta1.SandboxClaim, r *record) bool {
	bound := claim.Status.SandboxStatus.Name
	return claim.Annotations[keys.ClaimFirstReadyAt] != "" ||
		!r.readyAt.IsZero() ||
		meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionReady) ||
		storedReason(claim) == ReasonSandboxMissing ||
		(bound != "" && claim.Annotations[keys.SandboxName] == bound)
}

// storedReason is the reason of the Ready condition in the stored status.
func storedReason(claim *extensionsv1beta1.SandboxClaim) string {
	if ready := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// namedBefore is the Sandbox that a claim names in its annotation, or in the label of
// earlier versions.
func namedBefore(claim *extensionsv1beta1.SandboxClaim) string {
	if name := claim.Annotations[keys.SandboxName]; name != "" {
		return name
	}
	return claim.Labels[keys.SandboxName]
}
