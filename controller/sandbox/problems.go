// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// userError is a fault that stays until somebody changes an object.
type userError struct{ error }

// Unwrap gives the fault itself.
func (e userError) Unwrap() error { return e.error }

func userErrorf(format string, args ...any) error {
	return userError{fmt.Errorf(format, args...)}
}

// multiplePodsError stops everything that would choose among Pods.
type multiplePodsError struct{ count int }

func (e multiplePodsError) Error() string {
	return fmt.Sprintf("multiple Pods (%d) are controlled by this Sandbox; refusing to choose or create a Pod", e.count)
}

// problems are what went wrong in one pass.
type problems []error

// with adds an error, or each of those that are joined in it, unless another phase has
// said the same. A join that is wrapped stays one error.
func (p problems) with(err error) problems {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		for _, one := range joined.Unwrap() {
			p = p.with(one)
		}
		return p
	}
	if err == nil || slices.ContainsFunc(p, func(said error) bool { return said.Error() == err.Error() }) {
		return p
	}
	return append(p, err)
}

// message is what the user reads.
func (p problems) message() string {
	return errors.Join(p...).Error()
}

// multiplePods returns the error of that kind, if there is one.
func (p problems) multiplePods() (multiplePodsError, bool) {
	var multiple multiplePodsError
	return multiple, errors.As(errors.Join(p...), &multiple)
}

// onlyRaces says whether nothing is wrong but that somebody changed, deleted or replaced
// something at the same moment. The next pass settles that; no user needs to read of
// it.
func (p problems) onlyRaces() bool {
	return len(p) > 0 && !slices.ContainsFunc(p, func(err error) bool {
		return !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !errors.Is(err, patch.ErrReplaced)
	})
}

// outcome is what the work queue is told: what may pass by itself is retried; what a
// user must mend is not; more Pods than one is a state and no error.
func (p problems) outcome() error {
	var passing, lasting []error
	for _, err := range p {
		switch {
		case errors.As(err, &multiplePodsError{}):
		case isLasting(err):
			lasting = append(lasting, err)
		default:
			passing = append(passing, err)
		}
	}
	if len(passing) > 0 {
		return errors.Join(passing...)
	}
	if len(lasting) > 0 {
		return reconcile.TerminalError(errors.Join(lasting...))
	}
	return nil
}

func isLasting(err error) bool {
	return errors.As(err, &userError{}) ||
		patch.Invalid(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
