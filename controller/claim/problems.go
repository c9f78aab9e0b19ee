// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// refusal is a fault that stays until somebody changes an object. Its reason is that
// of the Ready condition.
type refusal struct {
	reason string
	error
}

// Unwrap gives the fault itself.
func (r refusal) Unwrap() error { return r.error }

// comesRight says whether the fault ends by itself, or by the object that is watched
// for, so that it is no error of anybody.
func (r refusal) comesRight() bool {
	switch r.reason {
	case ReasonSandboxCreatePending, ReasonAdoptionConflict, ReasonTemplateNotFound, ReasonWarmPoolNotFound:
		return true
	default:
		return false
	}
}

// errorSeen begins the message of a refusal, or any other error, that has no reason
// of its own.
const errorSeen = "Error seen: "

func refuse(reason, format string, args ...any) error {
	return refusal{reason: reason, error: fmt.Errorf(format, args...)}
}

// readyOf is the reason and the message of the Ready condition for an error.
func readyOf(err error) (reason, message string) {
	if r := (refusal{}); errors.As(err, &r) && r.reason != ReasonReconcilerError {
		return r.reason, r.Error()
	}
	return ReasonReconcilerError, errorSeen + err.Error()
}

// lasts says whether an error stays until somebody changes an object.
func lasts(err error) bool {
	return errors.As(err, &refusal{}) || patch.Invalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// outcome is what the work queue is told. What a user must mend is not retried.
func outcome(err error) error {
	if err == nil {
		return nil
	}
	if r := (refusal{}); errors.As(err, &r) && r.comesRight() {
		return nil
	}
	if lasts(err) {
		return reconcile.TerminalError(err)
	}
	return err
}
