// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// Names of the indexes of the cache.
const (
	// indexSandboxByPool finds Sandboxes by the UID of the pool that controls them.
	indexSandboxByPool = "warmpool.uid"
	// indexOrphanByHash finds Sandboxes of nobody by the label of a pool.
	indexOrphanByHash = "warmpool.orphan"
	// indexPoolByHash finds pools by the hash of their names.
	indexPoolByHash = "warmpool.hash"
	// indexPoolByTemplate finds pools by the names of their templates.
	indexPoolByTemplate = "warmpool.template"
)

const (
	firstRetry  = 200 * time.Millisecond
	lastRetry   = time.Minute
	passTimeout = time.Minute
)

// SetupWithManager declares indexes and watches and registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := declareIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("sandboxwarmpool").
		For(&extensionsv1beta1.SandboxWarmPool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&agentsv1beta1.Sandbox{}, r.sandboxEvents()).
		Watches(&extensionsv1beta1.SandboxTemplate{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfTemplate),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.settings.ConcurrentWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
			ReconciliationTimeout:   passTimeout,
			EnableWarmup:            new(true),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the pool controller: %w", err)
	}
	return nil
}

// declareIndexes must run before the cache starts.
func declareIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		name   string
		object client.Object
		value  func(client.Object) string
	}{
		{indexSandboxByPool, &agentsv1beta1.Sandbox{}, sandboxPool},
		{indexOrphanByHash, &agentsv1beta1.Sandbox{}, orphanHash},
		{indexPoolByHash, &extensionsv1beta1.SandboxWarmPool{}, func(o client.Object) string { return keys.NameHash(o.GetName()) }},
		{indexPoolByTemplate, &extensionsv1beta1.SandboxWarmPool{}, poolTemplate},
	} {
		err := indexer.IndexField(ctx, index.object, index.name, func(object client.Object) []string {
			if value := index.value(object); value != "" {
				return []string{value}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("declare index %s: %w", index.name, err)
		}
	}
	return nil
}

// controllingPool is the controller reference of a Sandbox if it names a pool.
func controllingPool(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != extensionsv1beta1.SandboxWarmPoolKind {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != extensionsv1beta1.GroupName {
		return nil
	}
	return owner
}

func sandboxPool(object client.Object) string {
	if owner := controllingPool(object); owner != nil {
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

func poolTemplate(object client.Object) string {
	if pool, isPool := object.(*extensionsv1beta1.SandboxWarmPool); isPool {
		return pool.Spec.TemplateRef.Name
	}
	return ""
}

// poolsOf are the pools that a Sandbox belongs to, or would, if it belongs to nobody.
func (r *Reconciler) poolsOf(ctx context.Context, sandbox client.Object) []ctrl.Request {
	if owner := controllingPool(sandbox); owner != nil {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: sandbox.GetNamespace(), Name: owner.Name}}}
	}
	if hash := orphanHash(sandbox); hash != "" {
		return r.poolsBy(ctx, indexPoolByHash, sandbox.GetNamespace(), hash)
	}
	return nil
}

func (r *Reconciler) poolsOfTemplate(ctx context.Context, template client.Object) []ctrl.Request {
	return r.poolsBy(ctx, indexPoolByTemplate, template.GetNamespace(), template.GetName())
}

func (r *Reconciler) poolsBy(ctx context.Context, index, namespace, value string) []ctrl.Request {
	var pools extensionsv1beta1.SandboxWarmPoolList
	if err := r.client.List(ctx, &pools, client.InNamespace(namespace), client.MatchingFields{index: value}, lookup.Shared); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the pools of an object", "index", index, "value", value)
		return nil
	}
	requests := make([]ctrl.Request, 0, len(pools.Items))
	for i := range pools.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
	}
	return requests
}

// sandboxEvents wakes the pools of a Sandbox when it comes, goes, changes hands or
// changes its state, and notes what the cache has shown.
func (r *Reconciler) sandboxEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, sandboxes ...client.Object) {
		for _, sandbox := range sandboxes {
			for _, request := range r.poolsOf(ctx, sandbox) {
				q.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if metav1.GetControllerOf(e.Object) != nil {
				r.memories.seen(e.Object.GetNamespace(), e.Object.GetName())
			}
			add(ctx, q, e.Object)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.memories.seen(e.Object.GetNamespace(), e.Object.GetName())
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if metav1.GetControllerOf(e.ObjectOld) == nil && metav1.GetControllerOf(e.ObjectNew) != nil {
				r.memories.seen(e.ObjectNew.GetNamespace(), e.ObjectNew.GetName())
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
	return one.Generation != other.Generation ||
		(one.DeletionTimestamp == nil) != (other.DeletionTimestamp == nil) ||
		len(one.Status.PodIPs) != len(other.Status.PodIPs) ||
		!apiequality.Semantic.DeepEqual(one.OwnerReferences, other.OwnerReferences) ||
		!sameCondition(one, other, agentsv1beta1.ConditionReady) ||
		!sameCondition(one, other, agentsv1beta1.ConditionPodScheduled)
}

func sameCondition(one, other *agentsv1beta1.Sandbox, kind string) bool {
	a, b := meta.FindStatusCondition(one.Status.Conditions, kind), meta.FindStatusCondition(other.Status.Conditions, kind)
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason
}
