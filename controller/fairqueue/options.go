// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// passTimeout ends a pass that hangs, for example on a cache that lost its watch.
const passTimeout = time.Minute

// Complete ends what builds a controller, which has a fair queue and so many workers. An object
// whose pass failed is looked at again after firstRetry, then after twice as long, and so
// on up to a minute, or to five seconds after a failure that passes. Nothing comes into the queue
// of a replica that stands by, which would take nothing out of it: when it takes the lead, it finds
// what there is then.
func Complete(build *builder.Builder, r reconcile.Reconciler, workers int, firstRetry time.Duration) error {
	pace := newRetries(firstRetry)
	return build.WithOptions(controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             pace,
		NewQueue:                New,
		ReconciliationTimeout:   passTimeout,
	}).Complete(pace.after(r))
}
