// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// phaseExpiry ends a Sandbox whose time is up. The first pass only says so; the next
// deletes the Pod and the Service, and the Sandbox itself if its policy wants that.
func (r *Reconciler) phaseExpiry(ctx context.Context, s *scope) error {
	if len(s.owned) == 1 {
		s.pod = s.owned[0]
	}
	s.announced = s.readyReason() == agentsv1beta1.ReasonSandboxExpired
	if !s.announced {
		s.wakeAt(s.now)
		return nil
	}
	if !s.leftovers() {
		return nil
	}
	// A client may have moved the time a moment ago, and this cannot be undone.
	fresh, err := lookup.Object(ctx, r.live, s.sandbox.Namespace, s.sandbox.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	if fresh == nil || !(&scope{sandbox: fresh, now: s.now, tier: s.tier, owned: s.owned}).expired() {
		s.superseded = true
		return nil
	}
	return r.endSandbox(ctx, s, fresh)
}

// leftovers says whether there is still something to delete.
func (s *scope) leftovers() bool {
	return len(s.owned) > 0 || s.ownsService() || s.deletesItself()
}

func (s *scope) ownsService() bool {
	return s.foundService != nil && ownershipOf(s.foundService, s.sandbox) == ours
}

func (s *scope) deletesItself() bool {
	policy := s.sandbox.Spec.ShutdownPolicy
	return policy != nil && *policy == agentsv1beta1.ShutdownPolicyDelete
}

func (r *Reconciler) endSandbox(ctx context.Context, s *scope, fresh *agentsv1beta1.Sandbox) error {
	var errs []error
	for _, pod := range s.owned {
		errs = append(errs, r.endPod(ctx, pod))
	}
	if s.ownsService() {
		errs = append(errs, r.deleteOwned(ctx, s.foundService))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end expired sandbox: %w", err)
	}
	if !s.deletesItself() {
		return nil
	}
	s.superseded = true // there is no status to write any more
	err := r.client.Delete(ctx, fresh,
		client.Preconditions{UID: &fresh.UID, ResourceVersion: &fresh.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}
