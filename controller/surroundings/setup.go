// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package surroundings

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

const controllerName = "surroundings"

// SetUp lets the Watcher follow the cluster. Nodes come from the manager's cache, the
// rest from a small one of its own. Replicas on stand-by follow too, so that one that
// takes over knows.
func (w *Watcher) SetUp(mgr ctrl.Manager) error {
	named := isolation.NamedServices(w.base)
	if w.servicesOnly && len(named) == 0 {
		return nil
	}
	others, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(), ByObject: w.watched(),
	})
	if err != nil {
		return fmt.Errorf("make a cache of the surroundings: %w", err)
	}
	if err := mgr.Add(others); err != nil {
		return fmt.Errorf("start a cache of the surroundings: %w", err)
	}
	w.readers = Readers{Nodes: mgr.GetCache(), Others: others}
	build := ctrl.NewControllerManagedBy(mgr).Named(controllerName).WithOptions(controller.Options{NeedLeaderElection: new(false)})
	if !w.servicesOnly {
		build = build.
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return all }),
				builder.WithPredicates(moved())).
			WatchesRawSource(source.Kind(others, &discoveryv1.EndpointSlice{}, toAll[*discoveryv1.EndpointSlice]()))
	}
	if len(named) > 0 {
		build = build.WatchesRawSource(source.Kind(others, &corev1.Service{}, toAll[*corev1.Service]()))
	}
	if w.serviceRanges != "" {
		build = build.WatchesRawSource(source.Kind(others, w.serviceRangeObject(), toAll[*unstructured.Unstructured]()))
	}
	if err := build.Complete(w); err != nil {
		return fmt.Errorf("set up controller %s: %w", controllerName, err)
	}
	return nil
}

// all is the one request that there is: the surroundings are read as a whole.
var all = []reconcile.Request{{}}

func toAll[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return all })
}

func (w *Watcher) serviceRangeObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(serviceRange(w.serviceRanges))
	return object
}

// watched are the apiserver's EndpointSlices and the Services of the namespaces that
// profiles name.
func (w *Watcher) watched() map[client.Object]cache.ByObject {
	watched := map[client.Object]cache.ByObject{}
	if !w.servicesOnly {
		watched[&discoveryv1.EndpointSlice{}] = cache.ByObject{Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {
			LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: apiserverService}),
		}}}
	}
	namespaces := map[string]cache.Config{}
	for _, service := range isolation.NamedServices(w.base) {
		namespaces[service.Namespace] = cache.Config{}
	}
	if len(namespaces) > 0 {
		watched[&corev1.Service{}] = cache.ByObject{Namespaces: namespaces}
	}
	return watched
}

// moved leaves out what nodes say of their health: only addresses count.
func moved() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasNode := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		return !wasNode || !isNode || !apiequality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses) ||
			!apiequality.Semantic.DeepEqual(before.Spec.PodCIDRs, after.Spec.PodCIDRs)
	}}
}
