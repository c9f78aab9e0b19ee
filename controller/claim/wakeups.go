// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// wakeups put a claim into the work queue, now or later, whether its pass ended well
// or not.
type wakeups struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[ctrl.Request]]
}

// Start takes the queue; it is called when the controller starts.
func (w *wakeups) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.queue.Store(&queue)
	return nil
}

func (w *wakeups) now(claim types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(ctrl.Request{NamespacedName: claim})
	}
}

// after asks for a pass after that time; one that is due at once waits a moment, so
// that the write of this pass is seen first.
func (w *wakeups) after(claim types.NamespacedName, span time.Duration) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).AddAfter(ctrl.Request{NamespacedName: claim}, max(span, time.Millisecond))
	}
}

// queued is how many claims wait for a worker.
func (w *wakeups) queued() int {
	if queue := w.queue.Load(); queue != nil {
		return (*queue).Len()
	}
	return 0
}
