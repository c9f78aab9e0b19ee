// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

const (
	// lastRetry bounds the back-off: a full quota may have room again at any time.
	lastRetry = time.Minute
	// lastPassingRetry bounds it after a failure that passes: an apiserver that was away is soon
	// back, and somebody may hold what others could have.
	lastPassingRetry = 5 * time.Second
)

// retries say when an object whose pass failed is looked at again.
type retries struct {
	workqueue.TypedRateLimiter[ctrl.Request]

	// passing are the requests whose last pass failed for what passes.
	passing sync.Map
}

func newRetries(first time.Duration) *retries {
	return &retries{TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, lastRetry)}
}

// When is how long the request waits.
func (r *retries) When(request ctrl.Request) time.Duration {
	wait := r.TypedRateLimiter.When(request)
	if _, soon := r.passing.Load(request); soon {
		return min(wait, lastPassingRetry)
	}
	return wait
}

// after has passes noted for what they fail.
func (r *retries) after(passes reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		result, err := passes.Reconcile(ctx, request)
		if isPassing(err) {
			r.passing.Store(request, struct{}{})
		} else {
			r.passing.Delete(request)
		}
		return result, err
	})
}

// isPassing says whether an error, or one of those that are joined in it, passes.
func isPassing(err error) bool {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		return slices.ContainsFunc(joined.Unwrap(), isPassing)
	}
	return patch.Passing(err)
}
