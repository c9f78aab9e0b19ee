// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// leave deletes the Sandboxes of a claim that was deleted and that a finalizer of somebody
// else's holds, and garbage collection with it. Nothing is written to the claim, which is nil
// once it is gone.
func (r *Reconciler) leave(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) error {
	if claim == nil || !relations.HeldByOthers(claim) {
		return nil
	}
	controlled, err := r.controlled(ctx, claim)
	if err != nil {
		return err
	}
	var errs []error
	for i := range controlled {
		if controlled[i].DeletionTimestamp == nil {
			errs = append(errs, r.deleteSandbox(ctx, &controlled[i]))
		}
	}
	return errors.Join(errs...)
}

// controlled are the Sandboxes that a claim controls, as the cache shows them and owns them.
func (r *Reconciler) controlled(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) ([]agentsv1beta1.Sandbox, error) {
	var list agentsv1beta1.SandboxList
	err := r.client.List(ctx, &list, client.InNamespace(claim.Namespace), client.MatchingFields{relations.SandboxByClaim: string(claim.UID)}, lookup.Shared)
	if err != nil {
		return nil, fmt.Errorf("list the Sandboxes of the claim: %w", err)
	}
	return list.Items, nil
}
