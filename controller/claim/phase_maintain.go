// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// phaseMaintain brings changes of the claim's or the template's metadata to the Pod,
// and removes Sandboxes that the claim controls besides its own.
func (r *Reconciler) phaseMaintain(ctx context.Context, s *scope) error {
	if s.sandbox == nil || s.launched != "" || s.sandbox.DeletionTimestamp != nil {
		return nil
	}
	return errors.Join(r.maintainMetadata(ctx, s), r.removeSurplus(ctx, s))
}

func (r *Reconciler) maintainMetadata(ctx context.Context, s *scope) error {
	name := relations.TemplateOfSandbox(s.sandbox)
	template, err := r.cachedTemplate(ctx, s, name)
	if err != nil {
		return err
	}
	if template == nil {
		if !contains(s.sandbox.Spec.PodTemplate.ObjectMeta, s.claim.Spec.AdditionalPodMetadata) {
			s.keep("waits until SandboxTemplate %q is there again, which says what a claim may add", name)
		}
		return nil
	}
	pod, err := blueprint.ClaimPodMetadata(s.claim, template)
	if err != nil {
		return s.tolerate(inWordsOfContract(s.claim, template, err))
	}
	if apiequality.Semantic.DeepEqual(pod, s.sandbox.Spec.PodTemplate.ObjectMeta) {
		return nil
	}
	changed := s.sandbox.DeepCopy()
	changed.Spec.PodTemplate.ObjectMeta = pod
	err = r.client.Patch(ctx, changed, metadataPatch(s.sandbox, changed), fieldOwner)
	if err != nil {
		return fmt.Errorf("write the metadata of Sandbox %q: %w", s.sandbox.Name, err)
	}
	s.sandbox = changed
	return nil
}

// removeSurplus deletes Sandboxes that the claim controls and that do not serve it. A
// write of an earlier leader that arrived late can leave one. Nobody was told of it:
// the stored status names the other.
func (r *Reconciler) removeSurplus(ctx context.Context, s *scope) error {
	if s.claim.Status.SandboxStatus.Name != s.sandbox.Name {
		return nil
	}
	var errs []error
	for name, surplus := range s.owned {
		if name == s.sandbox.Name || surplus.DeletionTimestamp != nil {
			continue
		}
		log.FromContext(ctx).Info("Deleting a second Sandbox of the claim", "sandbox", name, "serving", s.sandbox.Name)
		errs = append(errs, r.deleteSandbox(ctx, surplus))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) deleteSandbox(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	err := r.client.Delete(ctx, sandbox, client.Preconditions{UID: &sandbox.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground)) // or a finalizer on it would say what becomes of its Pod
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Sandbox %q: %w", sandbox.Name, err)
	}
	return nil
}
