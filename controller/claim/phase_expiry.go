// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// phaseExpiry first lets the status say that the claim has expired, and then does what
// its policy wants.
func (r *Reconciler) phaseExpiry(ctx context.Context, s *scope) error {
	if err := r.lookAgain(ctx, s); err != nil || s.silent || !s.expired() {
		return err
	}
	r.abandon(s.record)
	if !s.gaveUp() {
		s.sandbox = s.chosen()
	}
	if !s.announced() {
		s.wakeAt(s.now)
		return nil
	}
	switch shutdownPolicy(s.claim) {
	case extensionsv1beta1.ClaimShutdownPolicyDelete:
		return r.deleteClaim(ctx, s, metav1.DeletePropagationBackground)
	case extensionsv1beta1.ClaimShutdownPolicyDeleteForeground:
		return r.deleteClaim(ctx, s, metav1.DeletePropagationForeground)
	default:
		return r.cleanUp(ctx, s)
	}
}

// lookAgain asks the apiserver, before a claim gives up that may have got a Sandbox without
// the cache showing it. If it did, it has not expired.
func (r *Reconciler) lookAgain(ctx context.Context, s *scope) error {
	if s.announced() || !s.gaveUp() || !r.mustProve(s) {
		return nil
	}
	err := r.prove(ctx, s)
	if s.sandbox != nil {
		r.found(s)
	}
	return err
}

func (r *Reconciler) deleteClaim(ctx context.Context, s *scope, propagation metav1.DeletionPropagation) error {
	s.silent = true
	err := r.client.Delete(ctx, s.claim, client.PropagationPolicy(propagation), client.Preconditions{UID: &s.claim.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the claim: %w", err)
	}
	if err == nil {
		r.event(s, corev1.EventTypeNormal, ReasonClaimExpired, actionDeleting,
			fmt.Sprintf("Deleting Claim (ShutdownPolicy=%s)", shutdownPolicy(s.claim)))
	}
	return nil
}

// cleanUp deletes what the claim controls and keeps the claim.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope) error {
	if len(s.owned) == 0 {
		s.skipped = s.namesake != nil && !leaving(s)
		s.cleaned = true
		return nil
	}
	var errs []error
	for _, sandbox := range s.owned {
		if sandbox.DeletionTimestamp == nil {
			errs = append(errs, r.deleteSandbox(ctx, sandbox))
		}
	}
	return errors.Join(errs...)
}
