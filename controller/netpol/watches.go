// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/fairqueue"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

const firstRetry = 200 * time.Millisecond

// SetUp adds the controller to the manager. What comes needs nothing: who makes a Pod
// sees to its policies. So Pods and Sandboxes are looked at when they go, and pools also
// when they come, since the floor is there before their first member.
func (r *Namespaces) SetUp(mgr ctrl.Manager) error {
	ofPolicies := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request { return namespaceOf(object) })
	build := ctrl.NewControllerManagedBy(mgr).Named("networkpolicies").
		Watches(&networkingv1.NetworkPolicy{}, ofPolicies).
		Watches(&agentsv1beta1.Sandbox{}, ofPolicies, builder.WithPredicates(goes())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []ctrl.Request {
			if pod.GetLabels()[keys.Sandbox] != "true" {
				return nil
			}
			return namespaceOf(pod)
		}), builder.WithPredicates(goes())).
		WatchesRawSource(source.Channel(r.settings.Changed, handler.EnqueueRequestsFromMapFunc(r.everyNamespace)))
	if r.settings.Extensions {
		build = build.Watches(&extensionsv1beta1.SandboxWarmPool{}, ofPolicies, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		}))
	}
	if err := fairqueue.Complete(build, r, 1, firstRetry); err != nil {
		return fmt.Errorf("set up the controller of NetworkPolicies: %w", err)
	}
	return nil
}

func namespaceOf(object client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// everyNamespace is for a change that concerns the policies of all of them.
func (r *Namespaces) everyNamespace(ctx context.Context, _ client.Object) []ctrl.Request {
	var floors networkingv1.NetworkPolicyList
	if err := r.client.List(ctx, &floors, client.MatchingLabels{keys.ManagedBy: isolation.Manager}, lookup.Shared); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the NetworkPolicies")
		return nil
	}
	var requests []ctrl.Request
	for i := range floors.Items {
		if floors.Items[i].Name == isolation.FloorName {
			requests = append(requests, namespaceOf(&floors.Items[i])...)
		}
	}
	return requests
}

// goes lets through what went, or changed its labels and so may need another policy.
func goes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			_, isPod := e.ObjectNew.(*corev1.Pod)
			return isPod && e.ObjectOld.GetLabels()[keys.EgressProfile] != e.ObjectNew.GetLabels()[keys.EgressProfile]
		},
	}
}
