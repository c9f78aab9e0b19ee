// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// refusals wakes pools of which a member turned out to be refused.
type refusals struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[ctrl.Request]]
}

// start takes the queue. It is a source of events.
func (f *refusals) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	f.queue.Store(&queue)
	return nil
}

func (f *refusals) wake(pool types.NamespacedName) {
	if queue := f.queue.Load(); queue != nil {
		(*queue).Add(ctrl.Request{NamespacedName: pool})
	}
}

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
