// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// phaseIsolation puts the NetworkPolicies in place that the Pod needs before it may
// be made. It runs in every pass, so that a policy that somebody changed comes back.
func (r *Reconciler) phaseIsolation(ctx context.Context, s *scope) error {
	choice, invalid := isolation.Choose(r.settings.Platform, s.subject())
	if invalid != nil {
		return userError{invalid}
	}
	s.choice = choice
	for _, policy := range isolation.Policies(s.sandbox.Namespace, choice, r.settings.Platform) {
		if err := r.policies.ensure(ctx, policy); err != nil {
			return fmt.Errorf("no Pod is made before it is isolated: NetworkPolicy %q: %w", policy.Name, err)
		}
	}
	s.isolated = true
	return nil
}
