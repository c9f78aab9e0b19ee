// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import "context"

// phaseRecover finds the Sandbox that serves the claim, whoever gave it: what is
// controlled by the claim is its own, whether the status says so already or not.
func (r *Reconciler) phaseRecover(ctx context.Context, s *scope) error {
	if err := r.settle(ctx, s); err != nil {
		return err
	}
	s.sandbox = s.chosen()
	had := s.claim.Status.SandboxStatus.Name != "" || wasReady(s.claim, s.record)
	if s.sandbox == nil && had && storedReason(s.claim) != ReasonSandboxMissing {
		if err := r.prove(ctx, s); err != nil || s.silent {
			return err
		}
	}
	if s.sandbox != nil {
		r.found(s)
		return nil
	}
	s.record.lost, s.missing = true, wasReady(s.claim, s.record)
	return nil
}

// found notes that the claim has a Sandbox.
func (r *Reconciler) found(s *scope) {
	s.record.bound, s.record.touched, s.record.lost = s.sandbox.Name, true, false
	r.inherited.settle(s.claim.UID)
}
