// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// Reasons of the conditions.
const (
	reasonUsable          = "Usable"
	reasonInvalidProfile  = "InvalidEgressProfile"
	reasonBeyondCeiling   = "EgressBeyondCeiling"
	reasonInForce         = "InForce"
	reasonUnmanaged       = "Unmanaged"
	reasonNameTaken       = "NetworkPolicyNameTaken"
	reasonRefused         = "NetworkPolicyRefused"
	reasonReconcilerError = "ReconcilerError"
)

const actionReconciling = "Reconciling"

// desiredStatus is the status that the pass has come to.
func desiredStatus(s *scope) extensionsv1beta1.SandboxTemplateStatus {
	status := *s.template.Status.DeepCopy()
	status.ObservedGeneration = s.template.Generation
	status.Sandboxes, status.WarmPools, status.Claims = s.sandboxes, s.pools, s.claims
	policy := policyCondition(s)
	ready := metav1.Condition{
		Type: extensionsv1beta1.TemplateConditionReady, Status: metav1.ConditionTrue,
		Reason: reasonUsable, Message: "Pools and claims can make Sandboxes from the template",
	}
	if policy.Status == metav1.ConditionFalse && policy.Reason != reasonUnmanaged {
		ready.Status, ready.Reason = metav1.ConditionFalse, policy.Reason
		ready.Message = "No Sandbox starts before it is isolated: " + policy.Message
	}
	for _, c := range []metav1.Condition{ready, policy} {
		c.ObservedGeneration = s.template.Generation
		c.LastTransitionTime = metav1.NewTime(s.now)
		c.Message = clip.Message(c.Message)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return status
}

func policyCondition(s *scope) metav1.Condition {
	c := metav1.Condition{Type: extensionsv1beta1.TemplateConditionNetworkPolicy, Status: metav1.ConditionFalse}
	name := isolation.TemplateName(s.template.Name)
	var taken *netpol.TakenError
	switch {
	case isolation.IsBeyond(s.invalid):
		c.Reason, c.Message = reasonBeyondCeiling, s.invalid.Error()+"; until it is mended the Sandboxes of the template connect to nothing"
	case s.invalid != nil:
		c.Reason, c.Message = reasonInvalidProfile, s.invalid.Error()
	case errors.As(s.failure, &taken):
		c.Reason, c.Message = reasonNameTaken, taken.Error()
	case apierrors.IsInvalid(s.failure):
		c.Reason, c.Message = reasonRefused, "spec.networkPolicy: "+s.failure.Error()
	case s.failure != nil:
		c.Reason, c.Message = reasonReconcilerError, s.failure.Error()
	case !isolation.Managed(s.template):
		c.Reason = reasonUnmanaged
		c.Message = fmt.Sprintf("spec.networkPolicyManagement is Unmanaged, so there is no NetworkPolicy %q. Of the %d Sandboxes of the template, "+
			"which the label %s=%s selects: %s. All else is closed by %q",
			name, s.sandboxes, keys.SandboxTemplateRefHash, keys.NameHash(s.template.Name), openings(s.exposed), isolation.FloorName)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, reasonInForce
		c.Message = fmt.Sprintf("NetworkPolicy %q isolates the Sandboxes of the template", name)
	}
	return c
}

// writeStatus sends the status if it changed, and tells of what keeps the template from
// being used.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	desired := desiredStatus(s)
	if apiequality.Semantic.DeepEqual(s.template.Status, desired) {
		return nil
	}
	err := patch.Status(ctx, r.client, s.template.DeepCopy(), desired, fieldOwner)
	if patch.IgnoreGone(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	if err == nil { // or the next pass would tell it again
		r.tell(s, desired)
	}
	return nil
}

// tell publishes an Event when the template stops being usable, or for another reason.
func (r *Reconciler) tell(s *scope, desired extensionsv1beta1.SandboxTemplateStatus) {
	now := meta.FindStatusCondition(desired.Conditions, extensionsv1beta1.TemplateConditionReady)
	before := meta.FindStatusCondition(s.template.Status.Conditions, extensionsv1beta1.TemplateConditionReady)
	if now.Status == metav1.ConditionTrue || (before != nil && before.Reason == now.Reason && before.Message == now.Message) {
		return
	}
	r.recorder.Eventf(s.template, nil, corev1.EventTypeWarning, now.Reason, actionReconciling, "%s", clip.Note(now.Message))
}
