// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// repeat is as many passes as it takes to wait for longest.
func repeat(err error) []error { return slices.Repeat([]error{err}, 20) }

// An apiserver that was away is soon back; a quota or a policy may refuse for long.
func TestWhatFailsForAMomentIsTriedAgainWithinSeconds(t *testing.T) {
	const first = 50 * time.Millisecond
	away := apierrors.NewInternalError(io.EOF)
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "box", errors.New("exceeded quota"))
	cases := map[string]struct {
		errors []error
		want   time.Duration
	}{
		"the first failure":                  {[]error{away}, first},
		"an apiserver that fails":            {repeat(away), lastPassingRetry},
		"one that does not answer":           {repeat(fmt.Errorf("take Sandbox: %w", io.ErrUnexpectedEOF)), lastPassingRetry},
		"a quota that is full":               {repeat(full), lastRetry},
		"a fault of ours":                    {repeat(errors.New("x")), lastRetry},
		"a quota, and an apiserver besides":  {repeat(errors.Join(full, away)), lastPassingRetry},
		"an apiserver that failed, a quota":  {append(repeat(away), full), lastRetry},
		"one that fails after it came right": {append(repeat(away), nil, full), first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, request := newRetries(first), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "box"}}
			var failure error
			passes := r.after(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, failure }))
			var wait time.Duration
			for _, failure = range tc.errors {
				if _, err := passes.Reconcile(t.Context(), request); !errors.Is(err, failure) {
					t.Fatalf("the pass ends in %v, want %v", err, failure)
				}
				if failure == nil {
					r.Forget(request)
				} else {
					wait = r.When(request)
				}
			}
			if wait != tc.want {
				t.Errorf("it is tried again after %s, want %s", wait, tc.want)
			}
		})
	}
}
