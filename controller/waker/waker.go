// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waker puts objects into the work queue of a controller from within it: now, or
// at a time that a pass found, whether that pass ends well or not.
package waker

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// longestNap is how long an object that waits for a time is left alone: timers do not
// notice when the clock of the machine is set. A pass that comes too early costs no write.
const longestNap = 10 * time.Minute

// Waker is the way into the queue. Before the controller has started, it does nothing:
// every object gets a pass then.
type Waker struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[ctrl.Request]]
}

// Source is what the controller watches, so that it hands over its queue.
func (w *Waker) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		w.queue.Store(&queue)
		return nil
	})
}

// Now asks for a pass.
func (w *Waker) Now(object types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(ctrl.Request{NamespacedName: object})
	}
}

// After asks for a pass after that time at the latest; one that is due at once waits a
// moment, so that the write of this pass is seen first.
func (w *Waker) After(object types.NamespacedName, span time.Duration) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).AddAfter(ctrl.Request{NamespacedName: object}, min(max(span, time.Millisecond), longestNap))
	}
}

// Queued is how many objects wait for a worker.
func (w *Waker) Queued() int {
	if queue := w.queue.Load(); queue != nil {
		return (*queue).Len()
	}
	return 0
}

// Started says whether the controller has started.
func (w *Waker) Started() bool { return w.queue.Load() != nil }
