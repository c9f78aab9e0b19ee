// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
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

// UsabilityChanged says whether a template may be used and might not before, or the other
// way round: that depends on its tier and on Services too, not on its spec alone.
func UsabilityChanged(before, after client.Object) bool {
	refused := func(object client.Object) bool {
		template, isTemplate := object.(*extensionsv1beta1.SandboxTemplate)
		return isTemplate && meta.IsStatusConditionFalse(template.Status.Conditions, extensionsv1beta1.TemplateConditionReady)
	}
	return refused(before) != refused(after)
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
