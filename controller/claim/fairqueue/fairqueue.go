// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue is a work queue that serves namespaces in turn, so that one
// namespace's burst does not delay another's requests. Within a namespace the first
// to come is the first to be served.
package fairqueue

import (
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// New makes a work queue for a controller. Its depth is published under the name.
func New(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: newTurns()})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Name: name, DelayingQueue: delaying})
}

// turns holds the requests of each namespace in a line of its own. The work queue
// around it keeps out duplicates and calls it under a lock.
type turns struct {
	lines map[string][]ctrl.Request
	// next are the namespaces that have requests, in the order of their turns.
	next []string
	size int
}

func newTurns() *turns { return &turns{lines: map[string][]ctrl.Request{}} }

// Touch leaves a request that comes again where it is.
func (*turns) Touch(ctrl.Request) {}

// Push puts a request at the end of the line of its namespace.
func (t *turns) Push(request ctrl.Request) {
	line, waiting := t.lines[request.Namespace]
	if !waiting {
		t.next = append(t.next, request.Namespace)
	}
	t.lines[request.Namespace] = append(line, request)
	t.size++
}

// Len is the number of requests.
func (t *turns) Len() int { return t.size }

// Pop takes the first request of the namespace whose turn it is.
func (t *turns) Pop() ctrl.Request {
	namespace := t.next[0]
	line := t.lines[namespace]
	request, rest := line[0], line[1:]
	t.next = t.next[1:]
	t.size--
	if len(rest) == 0 {
		delete(t.lines, namespace)
		return request
	}
	t.lines[namespace] = rest
	t.next = append(t.next, namespace)
	return request
}
