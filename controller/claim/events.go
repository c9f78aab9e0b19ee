// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// Reasons and actions of Events.
const (
	eventAdopted     = "SandboxAdopted"
	eventProvisioned = "SandboxProvisioned"
	eventCurtailed   = "LifetimeCurtailed"
	eventMetadata    = "MetadataNotApplied"

	actionAdoption     = "Adoption"
	actionProvisioning = "Provisioning"
	actionExpired      = "Claim Expired"
	actionDeleting     = "Deleting"
	actionReconciling  = "Reconciling"
)

// tellLaunch tells which Sandbox the claim got.
func (r *Reconciler) tellLaunch(s *scope) {
	if s.launched == blueprint.LaunchWarm {
		r.event(s, corev1.EventTypeNormal, eventAdopted, actionAdoption, fmt.Sprintf("Adopted warm pool Sandbox %q", s.sandbox.Name))
		return
	}
	r.event(s, corev1.EventTypeNormal, eventProvisioned, actionProvisioning, fmt.Sprintf("Created Sandbox %q", s.sandbox.Name))
}

// tellCurtailed tells of a claim that got its Sandbox for a shorter time than its owner
// may expect: admission would have refused it.
func (r *Reconciler) tellCurtailed(s *scope) {
	if s.curtailed() {
		r.event(s, corev1.EventTypeWarning, eventCurtailed, actionProvisioning, fmt.Sprintf("The tier of the namespace ends this claim at %s, "+
			"whatever spec.lifecycle.shutdownTime says: set it to that time or an earlier one", s.tierEnd().UTC().Format(time.RFC3339)))
	}
}

// tellTolerated tells once why the Pod's metadata is not what a claim asks for, or would not be today.
func (r *Reconciler) tellTolerated(s *scope) {
	said := ""
	if s.tolerated != nil {
		said = s.tolerated.Error()
	}
	if said != "" && said != s.record.tolerated {
		r.event(s, corev1.EventTypeWarning, eventMetadata, actionReconciling, "What this claim adds to its Pod "+said)
	}
	s.record.tolerated = said
}

// tell tells of the ends that a status that was just written speaks of.
func (r *Reconciler) tell(s *scope, desired extensionsv1beta1.SandboxClaimStatus) {
	ready := meta.FindStatusCondition(desired.Conditions, agentsv1beta1.ConditionReady)
	if ready == nil || ready.Reason == storedReason(s.claim) {
		return
	}
	switch ready.Reason {
	case ReasonClaimExpired:
		r.event(s, corev1.EventTypeNormal, ReasonClaimExpired, actionExpired, "Claim expired")
	case ReasonSandboxMissing:
		r.event(s, corev1.EventTypeWarning, ReasonSandboxMissing, actionReconciling,
			"The Sandbox of the claim was deleted, and with it what ran there. Delete the claim and make a new one.")
	}
}

func (r *Reconciler) event(s *scope, kind, reason, action, note string) {
	if kind == corev1.EventTypeWarning || !r.settings.NoEvents {
		r.recorder.Eventf(s.claim, nil, kind, reason, action, "%s", clip.Note(note))
	}
}
