// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

const (
	// lastRetry bounds the back-off: a full quota may have room again at any time.
	lastRetry = time.Minute
	// passTimeout ends a pass that hangs, for example on a cache that lost its watch.
	passTimeout = time.Minute
)

// Options are those of a controller with a fair queue and so many workers. An object
// whose pass failed is looked at again after firstRetry, then after twice as long, and so
// on up to a minute. Nothing comes into the queue of a replica that stands by, which would take
// nothing out of it: when it takes the lead, it finds what there is then.
func Options(workers int, firstRetry time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		NewQueue:                New,
		ReconciliationTimeout:   passTimeout,
	}
}
