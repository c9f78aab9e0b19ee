// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// phaseService makes, repairs, adopts or deletes the headless Service. It leaves
// everything alone while more Pods than one claim to be the Sandbox's.
func (r *Reconciler) phaseService(ctx context.Context, s *scope) error {
	if _, multiple := s.problems.multiplePods(); multiple {
		return nil
	}
	err := r.tendService(ctx, s)
	if apierrors.IsAlreadyExists(err) { // the cache leaves out what has no tracking label
		s.foundService, err = lookup.Object(ctx, r.live, s.sandbox.Namespace, s.sandbox.Name, &corev1.Service{})
		if err == nil {
			err = r.tendService(ctx, s)
		}
	}
	return err
}

func (r *Reconciler) tendService(ctx context.Context, s *scope) error {
	action, err := decideService(s)
	if err == nil && (action == serviceCreate || action == serviceAdopt) {
		err = r.checkTwin(ctx, s.sandbox)
	}
	if err != nil {
		return err
	}
	switch action {
	case serviceCreate:
		err = r.createService(ctx, s)
	case serviceRepair:
		err = r.repairService(ctx, s)
	case serviceAdopt:
		err = r.adoptService(ctx, s)
	case serviceDelete:
		err = r.deleteOwned(ctx, s.foundService)
	case serviceNone:
	}
	if err != nil {
		return fmt.Errorf("service %q: %w", s.sandbox.Name, err)
	}
	return nil
}

func (r *Reconciler) createService(ctx context.Context, s *scope) error {
	service := buildService(s.sandbox)
	if err := r.client.Create(ctx, service, fieldOwner); err != nil {
		return err
	}
	s.service = service
	return nil
}

func (r *Reconciler) repairService(ctx context.Context, s *scope) error {
	service := s.foundService.DeepCopy()
	if repairService(service, s.sandbox) {
		if err := patch.Same(ctx, r.client, service, s.foundService, fieldOwner); err != nil {
			return err
		}
	}
	s.service = service
	return nil
}

func (r *Reconciler) adoptService(ctx context.Context, s *scope) error {
	service := s.foundService.DeepCopy()
	adoptService(service, s.sandbox)
	if err := r.client.Update(ctx, service, fieldOwner); err != nil {
		return err
	}
	s.service = service
	return nil
}

// deleteOwned deletes an object of ours, and no later one of the same name.
func (r *Reconciler) deleteOwned(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	return r.delete(ctx, object)
}

// delete deletes an object in the background, whatever a finalizer on it says of its dependents, and
// no later one of the same name.
func (r *Reconciler) delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	uid := object.GetUID()
	options = append([]client.DeleteOption{
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground),
	}, options...)
	return client.IgnoreNotFound(r.client.Delete(ctx, object, options...))
}

func serviceFQDN(service *corev1.Service, domain string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service.Name, service.Namespace, domain)
}
