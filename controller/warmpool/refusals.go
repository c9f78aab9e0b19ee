// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// gatherVerdicts notes which members today's rules refuse, as far as that is known.
func (r *Reconciler) gatherVerdicts(ctx context.Context, s *scope) {
	if r.settings.Verdicts == nil {
		return
	}
	sandboxes := make([]*agentsv1beta1.Sandbox, len(s.members))
	for i := range s.members {
		sandboxes[i] = s.members[i].sandbox
	}
	refused := r.settings.Verdicts.Refused(ctx, s.pool.Namespace, sandboxes)
	for i := range s.members {
		s.members[i].refused = refused.Has(s.members[i].sandbox.UID)
	}
}
