// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeldByOthers says whether a finalizer keeps an object that is being deleted. Those of
// garbage collection do not count: it is at work on the dependents then, be it that it ends
// them or that it lets go of them, as whoever deleted the object asked for.
func HeldByOthers(object metav1.Object) bool {
	finalizers := object.GetFinalizers()
	return object.GetDeletionTimestamp() != nil &&
		!slices.Contains(finalizers, metav1.FinalizerOrphanDependents) &&
		slices.ContainsFunc(finalizers, func(name string) bool { return name != metav1.FinalizerDeleteDependents })
}
