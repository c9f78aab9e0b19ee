// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
)

// tierEnd is when the tier ends the Sandbox; the zero time for never. One that belongs
// to a claim ends with it, unless it adopted a Pod that ran before. Those of a pool run what its template says before anybody claims
// them: they end too, not all at the same time, and the pool makes others.
func (s *scope) tierEnd() time.Time {
	controller := extensionController(s.sandbox)
	began, inherited := s.began()
	if controller == extensionsv1beta1.SandboxClaimKind && !inherited {
		return time.Time{}
	}
	var running []metav1.Object
	if len(s.owned) > 0 {
		running = append(running, s.sandbox)
	}
	for _, pod := range s.owned {
		running = append(running, pod)
	}
	end := lifetime.End(began, s.tier, running...)
	if controller != extensionsv1beta1.SandboxWarmPoolKind {
		return end
	}
	return lifetime.Spread(s.sandbox, end)
}

// clockSkew is how far the clocks of two apiservers may be apart.
const clockSkew = time.Minute

// began is when the life began that the tier bounds: with the Sandbox, or with a Pod that is older and that
// it adopted. Inherited says that there is such a Pod.
func (s *scope) began() (began time.Time, inherited bool) {
	created := s.sandbox.CreationTimestamp.Time
	began = created
	for _, pod := range s.owned {
		if made := pod.CreationTimestamp.Time; !made.IsZero() && made.Before(began) {
			began = made
		}
	}
	return began, created.Sub(began) > clockSkew
}

// curtailed says whether the tier ends the Sandbox before its own shutdownTime does.
func (s *scope) curtailed() bool {
	return lifetime.Curtails(s.tierEnd(), s.sandbox.Spec.ShutdownTime)
}

// outlived says whether the time is up that the tier gives.
func (s *scope) outlived() bool {
	end := s.tierEnd()
	return !end.IsZero() && !s.now.Before(end)
}

// expired says whether the time of the Sandbox is up. What is suspended, or never
// started, is not ended by its tier but gets no Pod any more: nothing of it runs, and
// its policy could have its files deleted.
func (s *scope) expired() bool {
	if at := s.sandbox.Spec.ShutdownTime; at != nil && !s.now.Before(at.Time) {
		return true
	}
	ran := len(s.owned) > 0 || s.readyReason() == agentsv1beta1.ReasonSandboxExpired
	return ran && s.outlived()
}

// expiresAt is when the time of the Sandbox will be up; the zero time for never.
func (s *scope) expiresAt() time.Time {
	end := s.tierEnd()
	if at := s.sandbox.Spec.ShutdownTime; at != nil && (end.IsZero() || at.Time.Before(end)) {
		return at.Time
	}
	return end
}

// lifetimeRefusals refuse a Pod to a Sandbox that is older than its tier lets it live.
func lifetimeRefusals(s *scope) field.ErrorList {
	if !s.outlived() {
		return nil
	}
	chosen := ""
	if at := s.sandbox.Spec.ShutdownTime; at != nil {
		chosen = at.UTC().Format(time.RFC3339)
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "shutdownTime"), chosen, fmt.Sprintf(
		"the tier of the namespace ends every Sandbox at most %s after it began, which was at %s: make a new one",
		s.tier.MaxLifetime.Duration, s.sandbox.CreationTimestamp.UTC().Format(time.RFC3339)))}
}

// expiredMessage says who ended the Sandbox.
func expiredMessage(s *scope) string {
	if at := s.sandbox.Spec.ShutdownTime; at != nil && !s.now.Before(at.Time) {
		return messageExpired
	}
	return messageExpired + messageCurtailed
}

// tellCurtailed tells of a Pod that was made for a shorter time than its owner may
// expect: admission would have refused the Sandbox.
func (r *Reconciler) tellCurtailed(s *scope) {
	if extensionController(s.sandbox) == "" && s.curtailed() {
		r.recorder.Eventf(s.sandbox, nil, corev1.EventTypeWarning, eventCurtailed, actionCreatingPod, "%s",
			"The tier of the namespace ends this Sandbox at "+s.tierEnd().UTC().Format(time.RFC3339)+
				", whatever spec.shutdownTime says: set it to that time or an earlier one")
	}
}
