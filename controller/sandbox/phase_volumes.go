// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// phaseVolumes makes the volume claims of the Sandbox, suspended or not. The spec of
// one that exists is never changed.
func (r *Reconciler) phaseVolumes(ctx context.Context, s *scope) error {
	var errs []error
	for i := range s.sandbox.Spec.VolumeClaimTemplates {
		claim := buildClaim(s.sandbox, &s.sandbox.Spec.VolumeClaimTemplates[i])
		if err := r.ensureClaim(ctx, s, claim); err != nil {
			errs = append(errs, err)
		}
	}
	s.volumesReady = len(errs) == 0
	return errors.Join(errs...)
}

func (r *Reconciler) ensureClaim(ctx context.Context, s *scope, want *corev1.PersistentVolumeClaim) error {
	found := s.claims[want.Name]
	if found == nil {
		var err error
		if found, err = r.createClaim(ctx, s, want); found == nil || err != nil {
			return err
		}
	}
	if holdsClaim(found, s.sandbox) {
		if err := claimGoing(s, found); err != nil || found.DeletionTimestamp != nil {
			return err
		}
	} else if err := errors.Join(s.mayAdopt("persistentvolumeclaim", found), s.mayInherit(found)); err != nil {
		return err
	}
	taken := found.DeepCopy()
	if !takeClaim(taken, want, s.sandbox) {
		return nil
	}
	// The list of owners is replaced whole: another that came meanwhile must not go.
	patch := client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, taken, patch, fieldOwner); err != nil {
		return fmt.Errorf("adopt persistentvolumeclaim %q: %w", want.Name, err)
	}
	return nil
}

// createClaim makes a volume claim, or gives the one that the cache did not know.
func (r *Reconciler) createClaim(ctx context.Context, s *scope, want *corev1.PersistentVolumeClaim) (existing *corev1.PersistentVolumeClaim, err error) {
	err = r.client.Create(ctx, want, fieldOwner)
	switch {
	case err == nil:
		s.claims[want.Name] = want
		return nil, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("create persistentvolumeclaim %q: %w", want.Name, err)
	}
	existing = &corev1.PersistentVolumeClaim{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), existing); err != nil {
		return nil, fmt.Errorf("read persistentvolumeclaim %q: %w", want.Name, err)
	}
	s.claims[want.Name] = existing
	return existing, nil
}

// claimGoing stands in the way of a new Pod while somebody deletes a volume: the Pod
// would never start. The running Pod keeps the volume, and works on.
func claimGoing(s *scope, claim *corev1.PersistentVolumeClaim) error {
	if claim.DeletionTimestamp == nil || len(s.owned) > 0 {
		return nil
	}
	return userErrorf("persistentvolumeclaim %q is being deleted since %s; a new, empty one is made once it is gone",
		claim.Name, claim.DeletionTimestamp.UTC().Format(time.RFC3339))
}
