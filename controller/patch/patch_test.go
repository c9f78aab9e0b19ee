// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// Who can mend what was refused: the owner of the object, or whoever made the policy.
func TestInvalid(t *testing.T) {
	refusal := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: metav1.StatusReasonInvalid, Message: message}}
	}
	cases := map[string]struct {
		err             error
		invalid, denied bool
	}{
		"a name that is too long": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), true, false},
		"a policy of admission": {refusal(http.StatusUnprocessableEntity,
			"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: name the team"), false, true},
		"a webhook that says invalid": {refusal(http.StatusUnprocessableEntity, `admission webhook "w" denied the request: name the team`), false, true},
		"a full quota":                {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota")), false, false},
		"no answer":                   {errors.New("somebody denied request: x"), false, false},
		"no error":                    {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			if err != nil {
				err = fmt.Errorf("write: %w", err)
			}
			if invalid, denied := patch.Invalid(err), patch.Denied(err); invalid != tc.invalid || denied != tc.denied {
				t.Errorf("Invalid(%v) = %t, want %t; Denied = %t, want %t", err, invalid, tc.invalid, denied, tc.denied)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	sandboxes := schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"}
	status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a conflict":                   {apierrors.NewConflict(sandboxes, "a", errors.New("x")), true},
		"an object that is gone":       {apierrors.NewNotFound(sandboxes, "a"), true},
		"a quota that is full":         {apierrors.NewForbidden(sandboxes, "a", errors.New("exceeded quota")), true},
		"a denial without a reason":    {status(http.StatusBadRequest), true},
		"a denial with a code":         {status(http.StatusTeapot), true},
		"an object that is invalid":    {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true},
		"too many requests":            {apierrors.NewTooManyRequests("x", 1), true},
		"a server that failed":         {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"a server that took too long":  {apierrors.NewTimeoutError("x", 1), false},
		"a request that took too long": {status(http.StatusRequestTimeout), false},
		"no answer":                    {&url.Error{Op: "Patch", Err: context.DeadlineExceeded}, false},
		"a pass that was ended":        {context.Canceled, false},
		"a connection that was lost":   {errors.New("http2: client connection lost"), false},
		"no error":                     {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			if err != nil {
				err = fmt.Errorf("write: %w", err)
			}
			if got := patch.Settled(err); got != tc.want {
				t.Errorf("Settled(%v) = %t, want %t", err, got, tc.want)
			}
		})
	}
}
