// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// New makes a work queue for a controller. Its depth is published under the name.
func New(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	lines := newTurns()
	requests := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: lines})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: requests})
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Name: name, DelayingQueue: delaying}),
		limiter: limiter, turns: lines,
	}
}

// queue tells the turns what priority a request has before the work queue gets it.
type queue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	limiter workqueue.TypedRateLimiter[ctrl.Request]
	turns   *turns
}

var _ priorityqueue.PriorityQueue[ctrl.Request] = (*queue)(nil)

// AddWithOpts asks for passes. Of the times that were asked for the earliest counts, of
// the priorities the highest.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, request := range requests {
		after := options.After
		if options.RateLimited {
			if limited := q.limiter.When(request); after == 0 || limited < after {
				after = limited
			}
		}
		q.turns.want(request, ptr.Deref(options.Priority, 0))
		if after > 0 {
			q.TypedRateLimitingInterface.AddAfter(request, after)
		} else {
			q.TypedRateLimitingInterface.Add(request)
		}
	}
}

// Add asks for a pass now.
func (q *queue) Add(request ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter asks for a pass after that time at the latest.
func (q *queue) AddAfter(request ctrl.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited asks for a pass after the back-off.
func (q *queue) AddRateLimited(request ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// Get waits for a request, or for the end.
func (q *queue) Get() (request ctrl.Request, ended bool) {
	request, _, ended = q.GetWithPriority()
	return request, ended
}

// GetWithPriority waits for a request, or for the end, and tells the priority that the
// request had.
func (q *queue) GetWithPriority() (request ctrl.Request, priority int, ended bool) {
	request, ended = q.TypedRateLimitingInterface.Get()
	if !ended && q.ShuttingDown() {
		q.Done(request)
		return ctrl.Request{}, 0, true
	}
	return request, q.turns.served(request), ended
}
