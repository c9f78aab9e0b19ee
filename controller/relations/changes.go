// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// TierChanged lets a namespace through whose tier label changed.
func TierChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetLabels()[keys.Tier] != e.ObjectNew.GetLabels()[keys.Tier]
		},
	}
}

// SameCondition says whether a condition says the same in both lists, whenever it
// began to.
func SameCondition(before, after []metav1.Condition, kind string) bool {
	a, b := meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind)
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}
