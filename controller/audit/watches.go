// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

const controllerName = "audit"

// reportDefinition is the name of the definition of reports.
const reportDefinition = "reports.openreports.io"

// definition is the definition of reports, as far as it is watched: whether it is there.
func definition() *metav1.PartialObjectMetadata {
	made := &metav1.PartialObjectMetadata{}
	made.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return made
}

// CacheByObject says what the cache keeps of the kinds that only this package reads.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		definition(): {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, reportDefinition)},
	}
}

type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

func request(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}}
}

// watch registers the controller of the passes.
func (a *Auditor) watch(mgr ctrl.Manager) error {
	settled := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue requests) {
			queue.AddAfter(request(e.Object.GetNamespace()), a.settle)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			if matters(e.ObjectOld, e.ObjectNew) {
				queue.AddAfter(request(e.ObjectNew.GetNamespace()), a.settle)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requests) {
			queue.AddAfter(request(e.Object.GetNamespace()), a.settle)
		},
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&agentsv1beta1.Sandbox{}, settled).
		Watches(&extensionsv1beta1.SandboxTemplate{}, settled).
		Watches(&extensionsv1beta1.SandboxWarmPool{}, settled).
		Watches(&extensionsv1beta1.SandboxClaim{}, settled).
		Watches(&corev1.Namespace{}, namespaceEvents()).
		Watches(&nodev1.RuntimeClass{}, a.allNamespaces(a.settle)).
		WatchesRawSource(a.waker.Source()).
		WatchesRawSource(source.Channel(a.settings.Changed, a.allNamespaces(a.settle))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1})
	if a.reconciler.reporter != nil {
		build = build.WatchesMetadata(definition(), a.definitionEvents())
	}
	if err := build.Complete(a.reconciler); err != nil {
		return fmt.Errorf("set up controller %s: %w", controllerName, err)
	}
	return nil
}

// matters says whether a change is one that rules could judge otherwise.
func matters(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		ownerUID(before) != ownerUID(after)
}

func ownerUID(object client.Object) types.UID {
	if by := owner(object); by != nil {
		return by.UID
	}
	return ""
}

// namespaceEvents ask for a pass when a namespace comes, goes, or is labelled otherwise.
func namespaceEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue requests) { queue.Add(request(e.Object.GetName())) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requests) { queue.Add(request(e.Object.GetName())) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			if relabelled(e.ObjectOld, e.ObjectNew) {
				queue.Add(request(e.ObjectNew.GetName()))
			}
		},
	}
}

func relabelled(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// allNamespaces asks for a pass over every namespace.
func (a *Auditor) allNamespaces(delay time.Duration) handler.EventHandler {
	all := func(ctx context.Context) { a.wakeAll(ctx, delay) }
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, _ event.CreateEvent, _ requests) { all(ctx) },
		DeleteFunc:  func(ctx context.Context, _ event.DeleteEvent, _ requests) { all(ctx) },
		GenericFunc: func(ctx context.Context, _ event.GenericEvent, _ requests) { all(ctx) },
	}
}

// definitionEvents note whether the cluster has reports, and publish in all namespaces
// when it begins to have them.
func (a *Auditor) definitionEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, _ requests) {
			a.reconciler.reporter.detect(true)
			a.wakeAll(ctx, 0)
		},
		// The kind is served some moments after its definition is there, and an update of
		// the definition says so.
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, _ requests) { a.wakeAll(ctx, time.Second) },
		DeleteFunc: func(context.Context, event.DeleteEvent, requests) { a.reconciler.reporter.detect(false) },
	}
}
