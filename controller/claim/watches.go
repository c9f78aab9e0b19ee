// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/fairqueue"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

const (
	controllerName = "sandboxclaim"

	firstRetry = 50 * time.Millisecond
	// firstPause is when a claim is looked at again that was just written, and lastPause when
	// the cache still has not shown that.
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// SetupWithManager declares watches and metrics and registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := r.metrics.register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("publish the metrics of claims: %w", err)
	}
	err := lookup.Hold(ctx, mgr.GetCache(), &extensionsv1beta1.SandboxClaim{}, &extensionsv1beta1.SandboxWarmPool{},
		&extensionsv1beta1.SandboxTemplate{}, &agentsv1beta1.Sandbox{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{})
	if err != nil {
		return err
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&extensionsv1beta1.SandboxClaim{}, builder.WithPredicates(byOthers())).
		Watches(&agentsv1beta1.Sandbox{}, r.sandboxEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Watches(&corev1.Namespace{}, r.namespaceEvents()).
		Watches(&extensionsv1beta1.SandboxWarmPool{}, r.poolEvents()).
		Watches(&extensionsv1beta1.SandboxTemplate{}, r.templateEvents()).
		WatchesRawSource(r.waker.Source())
	if err := fairqueue.Complete(build, r, r.settings.ConcurrentWorkers, firstRetry); err != nil {
		return fmt.Errorf("set up the claim controller: %w", err)
	}
	return nil
}

// byOthers leaves out what only this controller writes: the status, and the
// annotations that follow it. Resyncs, which change nothing, come through.
func byOthers() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetResourceVersion() == after.GetResourceVersion() ||
			before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(withoutOwn(before.GetAnnotations()), withoutOwn(after.GetAnnotations()))
	}}
}

func withoutOwn(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	for _, key := range []string{keys.SandboxName, keys.ClaimFirstReadyAt, keys.ControllerFirstObservedAt} {
		delete(kept, key)
	}
	return kept
}

type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// sandboxEvents keep the index and wake the claims that a change concerns.
func (r *Reconciler) sandboxEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue requests) {
			if sandbox, isSandbox := e.Object.(*agentsv1beta1.Sandbox); isSandbox {
				r.noteSandbox(nil, sandbox)
				if e.IsInInitialList {
					wakeOwner(sandbox, queue)
				} else {
					r.ownerLooksLater(sandbox)
				}
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			before, wasSandbox := e.ObjectOld.(*agentsv1beta1.Sandbox)
			after, isSandbox := e.ObjectNew.(*agentsv1beta1.Sandbox)
			if !wasSandbox || !isSandbox {
				return
			}
			r.noteSandbox(before, after)
			switch {
			case taken(before, after):
				r.ownerLooksLater(after)
			case concerns(before, after):
				wakeOwner(before, queue)
				wakeOwner(after, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			sandbox, isSandbox := e.Object.(*agentsv1beta1.Sandbox)
			if !isSandbox {
				return
			}
			r.index.DropMember(sandbox.UID)
			wakeOwner(sandbox, queue)
			r.wakeNamesake(ctx, sandbox, queue)
		},
	}
}

// noteSandbox keeps the index of a Sandbox as it is now; before is as it was noted last, nil
// for one that is new. Most changes are of its status and leave its form as it was.
func (r *Reconciler) noteSandbox(before, now *agentsv1beta1.Sandbox) {
	if before != nil && before.UID != now.UID {
		r.index.DropMember(before.UID) // its end was not seen
	}
	pool, belongs := poolOf(now)
	if !belongs {
		r.index.DropMember(now.UID)
		return
	}
	form := ""
	if before != nil && blueprint.SameForm(before, now) {
		form = r.index.FormOf(now.UID)
	}
	if form == "" {
		form = formOf(now)
	}
	r.index.SetMember(memberOf(now, pool, form))
}

func wakeOwner(sandbox *agentsv1beta1.Sandbox, queue requests) {
	if owner := relations.Claim(sandbox); owner != nil {
		queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: sandbox.Namespace, Name: owner.Name}})
	}
}

// ownerLooksLater lets the claim that a Sandbox has just become the one of have a pass soon. The
// pass that gave it the Sandbox is hardly over yet, and knows; but the write may be one whose
// answer was lost, or that of an earlier leader.
func (r *Reconciler) ownerLooksLater(sandbox *agentsv1beta1.Sandbox) {
	if owner := relations.Claim(sandbox); owner != nil {
		r.lookLater(client.ObjectKey{Namespace: sandbox.Namespace, Name: owner.Name})
	}
}

// wakeNamesake wakes the claim whose Sandbox may have the name of one that is gone.
func (r *Reconciler) wakeNamesake(ctx context.Context, sandbox *agentsv1beta1.Sandbox, queue requests) {
	key := client.ObjectKeyFromObject(sandbox)
	if err := r.client.Get(ctx, key, &extensionsv1beta1.SandboxClaim{}, lookup.Glance); err == nil {
		queue.Add(ctrl.Request{NamespacedName: key})
	}
}

// podEvents keep the index of which Sandboxes have a Pod that is ready.
func (r *Reconciler) podEvents() handler.EventHandler {
	note := func(object client.Object) {
		pod, isPod := object.(*corev1.Pod)
		if owner := relations.Sandbox(object); isPod && owner != nil {
			r.index.SetPod(owner.UID, podOf(pod))
		}
	}
	drop := func(object client.Object) {
		if owner := relations.Sandbox(object); owner != nil {
			r.index.DropPod(owner.UID, object.GetUID())
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { note(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) {
			before, now := relations.Sandbox(e.ObjectOld), relations.Sandbox(e.ObjectNew)
			if before != nil && (now == nil || now.UID != before.UID) {
				drop(e.ObjectOld) // its end was not seen
			}
			note(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { drop(e.Object) },
	}
}

// nodeEvents keep the index of which nodes are healthy.
func (r *Reconciler) nodeEvents() handler.EventHandler {
	note := func(object client.Object) {
		if node, isNode := object.(*corev1.Node); isNode {
			r.index.SetNode(node.Name, healthy(node))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { note(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) { note(e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { r.index.SetNode(e.Object.GetName(), false) },
	}
}

// namespaceEvents let members be judged anew when the tier of their namespace changes, and
// forget what was counted in one that is gone.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { r.index.Reconsider(e.Object.GetName()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetLabels()[keys.Tier] != e.ObjectNew.GetLabels()[keys.Tier] {
				r.index.Reconsider(e.ObjectNew.GetName())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { r.metrics.forget(e.Object.GetName()) },
	}
}

// poolEvents let the members of a pool be judged anew and wake the claims that may wait for
// it, when it is there, is another one, or goes.
func (r *Reconciler) poolEvents() handler.EventHandler {
	wake := func(ctx context.Context, pool client.Object, queue requests) {
		r.index.ReconsiderPool(client.ObjectKeyFromObject(pool))
		for _, request := range r.claimsOfPool(ctx, pool, false) {
			queue.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { wake(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			if respecified(e.ObjectOld, e.ObjectNew) {
				wake(ctx, e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			r.metrics.forgetPool(e.Object)
			wake(ctx, e.Object, queue)
		},
	}
}

// respecified says whether an object says something else than before, besides its status.
func respecified(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// templateEvents let the members of the pools that use a template be judged anew, and wake
// claims of those pools: all of them when it appears, and those without a Sandbox when it
// changes.
func (r *Reconciler) templateEvents() handler.EventHandler {
	wake := func(ctx context.Context, template client.Object, all bool, queue requests) {
		var pools extensionsv1beta1.SandboxWarmPoolList
		err := r.client.List(ctx, &pools, client.InNamespace(template.GetNamespace()),
			client.MatchingFields{relations.PoolByTemplate: template.GetName()}, lookup.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find the pools of a template", "template", template.GetName())
		}
		for i := range pools.Items {
			r.index.ReconsiderPool(client.ObjectKeyFromObject(&pools.Items[i]))
			for _, request := range r.claimsOfPool(ctx, &pools.Items[i], all) {
				queue.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { wake(ctx, e.Object, true, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			if respecified(e.ObjectOld, e.ObjectNew) || relations.UsabilityChanged(e.ObjectOld, e.ObjectNew) {
				wake(ctx, e.ObjectNew, false, queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { r.metrics.forgetTemplate(e.Object) },
	}
}

func (r *Reconciler) claimsOfPool(ctx context.Context, pool client.Object, all bool) []ctrl.Request {
	var claims extensionsv1beta1.SandboxClaimList
	err := r.client.List(ctx, &claims, client.InNamespace(pool.GetNamespace()), client.MatchingFields{relations.ClaimByPool: pool.GetName()}, lookup.Shared)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the claims of a pool", "pool", pool.GetName())
		return nil
	}
	var woken []ctrl.Request
	for i := range claims.Items {
		if all || claims.Items[i].Status.SandboxStatus.Name == "" {
			woken = append(woken, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&claims.Items[i])})
		}
	}
	return woken
}
