// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Reasons and actions of Events.
const (
	eventNotProgressing = "WarmPoolNotProgressing"
	eventProgressing    = "WarmPoolProgressing"
	actionReconciling   = "Reconciling"

	noteProgressing = "Warm pool is progressing again"
)

// unschedulableNote is the contract's sentence.
func unschedulableNote(s *scope, held int) string {
	return fmt.Sprintf("%d/%d sandboxes are unschedulable past the %s readiness grace period; "+
		"holding them instead of replacing (replacements would be equally unschedulable)", held, s.desired(), s.grace)
}

// tell publishes an Event when members begin to be held for want of a node, and when
// none is any more.
func (r *Reconciler) tell(s *scope) {
	held := s.unschedulable()
	switch {
	case held > 0 && !s.memory.stuck:
		s.memory.stuck = true
		r.recorder.Eventf(s.pool, nil, corev1.EventTypeWarning, eventNotProgressing, actionReconciling, "%s", unschedulableNote(s, held))
	case held == 0 && s.memory.stuck:
		s.memory.stuck = false
		r.recorder.Eventf(s.pool, nil, corev1.EventTypeNormal, eventProgressing, actionReconciling, noteProgressing)
	}
}
