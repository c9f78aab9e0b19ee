// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/fairqueue"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// Names of the indexes of the cache, besides those that it shares with others.
const (
	// indexSandboxByPool finds Sandboxes by the UID of the pool that controls them.
	indexSandboxByPool = "warmpool.uid"
	// indexOrphanByHash finds Sandboxes of nobody by the label of a pool.
	indexOrphanByHash = "warmpool.orphan"
	// indexWantingClaimByPool finds the claims of a pool that still want something.
	indexWantingClaimByPool = "warmpool.claim"
)

const (
	firstRetry = 200 * time.Millisecond
	// gatherFor is how long an event waits for others before a pass looks at them all: one
	// claim makes five of them, and a pass looks at every member.
	gatherFor = 100 * time.Millisecond
)

// SetupWithManager declares indexes and watches and registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := declareIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	err := lookup.Hold(ctx, mgr.GetCache(), &extensionsv1beta1.SandboxWarmPool{}, &extensionsv1beta1.SandboxTemplate{},
		&extensionsv1beta1.SandboxClaim{}, &agentsv1beta1.Sandbox{}, &corev1.Namespace{})
	if err != nil {
		return err
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named("sandboxwarmpool").
		For(&extensionsv1beta1.SandboxWarmPool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&agentsv1beta1.Sandbox{}, r.sandboxEvents()).
		Watches(&extensionsv1beta1.SandboxTemplate{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfTemplate),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, usabilityChanged()))).
		Watches(&extensionsv1beta1.SandboxClaim{}, r.claimEvents()).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfNamespace), builder.WithPredicates(relations.TierChanged())).
		WatchesRawSource(r.waker.Source())
	if err := fairqueue.Complete(build, r, r.settings.ConcurrentWorkers, firstRetry); err != nil {
		return fmt.Errorf("set up the pool controller: %w", err)
	}
	return nil
}

func usabilityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return relations.UsabilityChanged(e.ObjectOld, e.ObjectNew) }}
}

// declareIndexes must run before the cache starts.
func declareIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return relations.Declare(ctx, indexer,
		relations.Index{Name: indexSandboxByPool, Object: &agentsv1beta1.Sandbox{}, Value: sandboxPool},
		relations.Index{Name: indexOrphanByHash, Object: &agentsv1beta1.Sandbox{}, Value: orphanHash},
		relations.Index{Name: indexWantingClaimByPool, Object: &extensionsv1beta1.SandboxClaim{}, Value: poolOfWanting},
	)
}

func sandboxPool(object client.Object) string {
	if owner := relations.Pool(object); owner != nil {
		return string(owner.UID)
	}
	return ""
}

func orphanHash(object client.Object) string {
	if metav1.GetControllerOf(object) != nil || object.GetDeletionTimestamp() != nil {
		return ""
	}
	return object.GetLabels()[keys.WarmPoolSandbox]
}

// poolOfWanting is the pool of a claim that still wants something.
func poolOfWanting(object client.Object) string {
	if claim, isClaim := object.(*extensionsv1beta1.SandboxClaim); isClaim && wantOf(claim) != wantsNothing {
		return claim.Spec.WarmPoolRef.Name
	}
	return ""
}

// poolsOf are the pools that a Sandbox belongs to, or would, if it belongs to nobody.
func (r *Reconciler) poolsOf(ctx context.Context, sandbox client.Object) []ctrl.Request {
	if owner := relations.Pool(sandbox); owner != nil {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: sandbox.GetNamespace(), Name: owner.Name}}}
	}
	if hash := orphanHash(sandbox); hash != "" {
		return r.poolsBy(ctx, relations.ByNameHash, sandbox.GetNamespace(), hash)
	}
	return nil
}

func (r *Reconciler) poolsOfTemplate(ctx context.Context, template client.Object) []ctrl.Request {
	return r.poolsBy(ctx, relations.PoolByTemplate, template.GetNamespace(), template.GetName())
}

// poolsOfNamespace are all of a namespace whose tier changed: what a pool makes, and
// whether its template may be used there, depends on it.
func (r *Reconciler) poolsOfNamespace(ctx context.Context, namespace client.Object) []ctrl.Request {
	return r.list(ctx, namespace.GetName())
}

func (r *Reconciler) poolsBy(ctx context.Context, index, namespace, value string) []ctrl.Request {
	return r.list(ctx, namespace, client.MatchingFields{index: value})
}

func (r *Reconciler) list(ctx context.Context, namespace string, selected ...client.ListOption) []ctrl.Request {
	var pools extensionsv1beta1.SandboxWarmPoolList
	if err := r.client.List(ctx, &pools, append(selected, client.InNamespace(namespace), lookup.Shared)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the pools that a change concerns", "namespace", namespace)
		return nil
	}
	requests := make([]ctrl.Request, 0, len(pools.Items))
	for i := range pools.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
	}
	return requests
}

// claimEvents wakes the pool of a claim when the claim begins or ceases to want
// something: at once if the pool had nothing to hand out when it was last looked at.
func (r *Reconciler) claimEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(q queue, claim client.Object) {
		pool := client.ObjectKey{Namespace: claim.GetNamespace(), Name: poolOfWanting(claim)}
		switch {
		case pool.Name == "":
		case r.memories.stocked(pool):
			q.AddAfter(ctrl.Request{NamespacedName: pool}, gatherFor)
		default:
			q.Add(ctrl.Request{NamespacedName: pool})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, wasClaim := e.ObjectOld.(*extensionsv1beta1.SandboxClaim)
			after, isClaim := e.ObjectNew.(*extensionsv1beta1.SandboxClaim)
			if wasClaim && isClaim && (wantOf(before) != wantOf(after) || poolOfWanting(before) != poolOfWanting(after)) {
				add(q, before)
				add(q, after)
			}
		},
	}
}

// sandboxEvents wakes the pools of a Sandbox a moment after it comes, goes, changes hands
// or changes its state, and notes what the cache has shown.
func (r *Reconciler) sandboxEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, sandboxes ...client.Object) {
		for _, sandbox := range sandboxes {
			for _, request := range r.poolsOf(ctx, sandbox) {
				q.AddAfter(request, gatherFor)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if metav1.GetControllerOf(e.Object) != nil {
				r.memories.seen(e.Object)
			}
			add(ctx, q, e.Object)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.memories.seen(e.Object)
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			another := e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || metav1.GetControllerOf(e.ObjectOld) == nil
			if another && metav1.GetControllerOf(e.ObjectNew) != nil {
				r.memories.seen(e.ObjectNew)
			}
			if matters(e.ObjectOld, e.ObjectNew) {
				add(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
	}
}

// matters says whether a change of a Sandbox is one that its pool acts upon.
func matters(before, after client.Object) bool {
	one, isSandbox := before.(*agentsv1beta1.Sandbox)
	other, areSandboxes := after.(*agentsv1beta1.Sandbox)
	if !isSandbox || !areSandboxes {
		return true
	}
	return one.Generation != other.Generation || !maps.Equal(one.Labels, other.Labels) ||
		(one.DeletionTimestamp == nil) != (other.DeletionTimestamp == nil) ||
		len(one.Status.PodIPs) != len(other.Status.PodIPs) ||
		!apiequality.Semantic.DeepEqual(one.OwnerReferences, other.OwnerReferences) ||
		!relations.SameCondition(one.Status.Conditions, other.Status.Conditions, agentsv1beta1.ConditionReady) ||
		!relations.SameCondition(one.Status.Conditions, other.Status.Conditions, agentsv1beta1.ConditionPodScheduled)
}
