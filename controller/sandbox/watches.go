// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/fairqueue"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

const (
	firstRetry = 200 * time.Millisecond
	// representatives are how many Sandboxes are woken for one isolation policy that
	// changed. Each mends the policies that select its Pod, whatever else it fails in;
	// more than one are asked in case that Pod is about to go.
	representatives = 8
)

// SetupWithManager declares indexes and watches and registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := declareIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := r.publish(mgr); err != nil {
		return err
	}
	err := lookup.Hold(ctx, mgr.GetCache(), &agentsv1beta1.Sandbox{}, &corev1.Pod{}, &corev1.Service{},
		&corev1.PersistentVolumeClaim{}, &networkingv1.NetworkPolicy{}, &corev1.Namespace{})
	if err != nil {
		return err
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named("sandbox").
		For(&agentsv1beta1.Sandbox{}, builder.WithPredicates(moreThanStatus(), predicate.Not(handedOver()))).
		Watches(&agentsv1beta1.Sandbox{}, r.later(), builder.WithPredicates(handedOver())).
		Watches(&agentsv1beta1.Sandbox{}, handler.EnqueueRequestsFromMapFunc(r.twinsOf), builder.WithPredicates(gone())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.sandboxesOfPod)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.sandboxOf)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.sandboxesOfClaim)).
		Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(r.sandboxesOfPolicy),
			builder.WithPredicates(changedOrGone())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.sandboxesOfNamespace),
			builder.WithPredicates(relations.TierChanged())).
		Watches(&corev1.Namespace{}, r.namespacesGone()).
		WatchesRawSource(r.waker.Source())
	if err := fairqueue.Complete(build, r, r.settings.ConcurrentWorkers, firstRetry); err != nil {
		return fmt.Errorf("set up the sandbox controller: %w", err)
	}
	return nil
}

// publish publishes the metrics, in the place of those of an earlier controller of the
// same process.
func (r *Reconciler) publish(mgr ctrl.Manager) error {
	for _, collector := range []prometheus.Collector{newPopulation(r.client, mgr.Elected()), r.starts.latency} {
		metrics.Registry.Unregister(collector)
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("publish the metrics of Sandboxes: %w", err)
		}
	}
	return nil
}

// sandboxOf maps an object to the Sandbox that controls it, or else to the Sandbox in
// whose place it sits: that one waits for it to go or to be handed over.
func (r *Reconciler) sandboxOf(ctx context.Context, object client.Object) []ctrl.Request {
	if owner := relations.Sandbox(object); owner != nil {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
	}
	key := client.ObjectKeyFromObject(object)
	var sandbox agentsv1beta1.Sandbox
	if err := r.client.Get(ctx, key, &sandbox, lookup.Glance); err != nil {
		return nil // there is none of that name
	}
	return []ctrl.Request{{NamespacedName: key}}
}

// sandboxesOfPod maps a Pod as sandboxOf does, and if nobody controls it, also to the
// Sandboxes that track it under its own name. One that is astray is looked after under its name.
func (r *Reconciler) sandboxesOfPod(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.sandboxOf(ctx, object)
	if relations.Sandbox(object) != nil {
		return requests
	}
	if stray(object) {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return append(requests, r.sandboxesBy(ctx, indexSandboxByPod, object)...)
}

// sandboxesOfClaim maps a volume claim to the Sandboxes that have one of that name.
func (r *Reconciler) sandboxesOfClaim(ctx context.Context, object client.Object) []ctrl.Request {
	return r.sandboxesBy(ctx, indexSandboxByClaim, object)
}

// sandboxesBy are the Sandboxes that an index finds by the name of an object.
func (r *Reconciler) sandboxesBy(ctx context.Context, index string, object client.Object) []ctrl.Request {
	var sandboxes agentsv1beta1.SandboxList
	err := r.client.List(ctx, &sandboxes, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{index: object.GetName()}, lookup.Shared)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Sandboxes of an object", "index", index, "name", object.GetName())
		return nil
	}
	return requestsFor(sandboxes.Items)
}

// sandboxesOfPolicy maps an isolation policy to a few Sandboxes whose Pods it selects.
func (r *Reconciler) sandboxesOfPolicy(ctx context.Context, object client.Object) []ctrl.Request {
	var pods corev1.PodList
	err := r.client.List(ctx, &pods, client.InNamespace(object.GetNamespace()), client.Limit(representatives),
		client.MatchingFields{indexPodByPolicy: object.GetName()}, lookup.Shared)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Sandboxes of an isolation policy", "networkPolicy", object.GetName())
		return nil
	}
	var requests []ctrl.Request
	for i := range pods.Items {
		if owner := relations.Sandbox(&pods.Items[i]); owner != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}})
		} else {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
		}
	}
	return requests
}

// sandboxesOfNamespace maps a namespace to all its Sandboxes.
func (r *Reconciler) sandboxesOfNamespace(ctx context.Context, object client.Object) []ctrl.Request {
	var sandboxes agentsv1beta1.SandboxList
	if err := r.client.List(ctx, &sandboxes, client.InNamespace(object.GetName()), lookup.Shared); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Sandboxes of a namespace", "namespace", object.GetName())
		return nil
	}
	return requestsFor(sandboxes.Items)
}

func requestsFor(sandboxes []agentsv1beta1.Sandbox) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(sandboxes))
	for i := range sandboxes {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sandboxes[i])})
	}
	return requests
}

// moreThanStatus leaves out what only this controller writes: its own status would
// start a pass that has nothing to do, and cut short the back-off of one that failed.
// Resyncs, which change nothing, come through.
func moreThanStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetResourceVersion() == after.GetResourceVersion() ||
			before.GetGeneration() != after.GetGeneration() ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!apiequality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}}
}

// handedOver picks the moment in which a claim takes a Sandbox of a pool.
func handedOver() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return relations.Pool(e.ObjectOld) != nil && relations.Claim(e.ObjectNew) != nil
		},
	}
}

// namespacesGone forgets what was measured in a namespace that is gone.
func (r *Reconciler) namespacesGone() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		r.starts.leave(e.Object.GetName())
	}}
}

// later asks for a pass a while after a Sandbox changed, so that the claim that took it
// is served first: what is left to do for the Sandbox, nobody waits for.
func (r *Reconciler) later() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		queue.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, r.settings.WriteBehind)
	}}
}

// changedOrGone leaves out policies that appear: whoever made one has read it.
func changedOrGone() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}
