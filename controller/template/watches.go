// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// indexSandboxByTemplate finds Sandboxes by the name of the template that they were made from.
const indexSandboxByTemplate = "template.sandboxes"

const (
	firstRetry = 200 * time.Millisecond
	// countAfter is how long after a change the users of a template are counted.
	countAfter = time.Second
	// countEvery is how often they are counted at most.
	countEvery = 5 * time.Second
)

// SetupWithManager declares indexes and watches and registers the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := relations.Declare(ctx, mgr.GetFieldIndexer(),
		relations.Index{Name: indexSandboxByTemplate, Object: &agentsv1beta1.Sandbox{}, Value: relations.TemplateOfSandbox})
	if err != nil {
		return err
	}
	err = lookup.Hold(ctx, mgr.GetCache(), &extensionsv1beta1.SandboxTemplate{}, &extensionsv1beta1.SandboxWarmPool{},
		&extensionsv1beta1.SandboxClaim{}, &agentsv1beta1.Sandbox{}, &networkingv1.NetworkPolicy{}, &corev1.Namespace{})
	if err != nil {
		return err
	}
	templates := ctrl.NewControllerManagedBy(mgr)
	if every := r.settings.EveryPolicy; every != nil {
		if err := lookup.Hold(ctx, mgr.GetCache(), &corev1.Pod{}); err != nil {
			return err
		}
		templates.WatchesRawSource(source.Kind(every, client.Object(&networkingv1.NetworkPolicy{}), later(r.templatesOpenedBy))).
			Watches(&corev1.Pod{}, later(r.templatesOpenFor))
	}
	build := templates.
		Named("sandboxtemplate").
		For(&extensionsv1beta1.SandboxTemplate{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(templateOfPolicy)).
		Watches(&agentsv1beta1.Sandbox{}, later(templateOfSandbox)).
		Watches(&extensionsv1beta1.SandboxWarmPool{}, later(templateOfPool)).
		Watches(&extensionsv1beta1.SandboxClaim{}, later(r.templateOfClaim)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.templatesOfNamespace), builder.WithPredicates(relations.TierChanged())).
		WatchesRawSource(source.Channel(r.settings.Changed, handler.EnqueueRequestsFromMapFunc(r.everyTemplate))).
		WatchesRawSource(r.waker.Source())
	if err := fairqueue.Complete(build, r, r.settings.ConcurrentWorkers, firstRetry); err != nil {
		return fmt.Errorf("set up the template controller: %w", err)
	}
	return nil
}

// templateOfPolicy maps a policy to the template that it was made for, whether that
// still exists or not.
func templateOfPolicy(_ context.Context, object client.Object) []ctrl.Request {
	name := strings.TrimSuffix(object.GetName(), isolation.TemplateName(""))
	if object.GetLabels()[keys.Template] != keys.TemplateKey(name) {
		return nil
	}
	return requestFor(object.GetNamespace(), name)
}

// templatesOpenedBy maps a policy of somebody else to the unmanaged templates of its
// namespace, whose status tells what it opens.
func (r *Reconciler) templatesOpenedBy(ctx context.Context, policy client.Object) []ctrl.Request {
	if known, is := policy.(*networkingv1.NetworkPolicy); is && isolation.Ours(known) {
		return nil
	}
	return r.unmanaged(ctx, policy.GetNamespace(), func(string) bool { return true })
}

// templatesOpenFor maps a Pod to the unmanaged template that it was made from, whose status
// tells what is open for it.
func (r *Reconciler) templatesOpenFor(ctx context.Context, pod client.Object) []ctrl.Request {
	hash := pod.GetLabels()[keys.SandboxTemplateRefHash]
	if hash == "" {
		return nil
	}
	return r.unmanaged(ctx, pod.GetNamespace(), func(name string) bool { return keys.NameHash(name) == hash })
}

// unmanaged are the templates of a namespace that are unmanaged and meant.
func (r *Reconciler) unmanaged(ctx context.Context, namespace string, meant func(name string) bool) []ctrl.Request {
	var templates extensionsv1beta1.SandboxTemplateList
	if err := r.client.List(ctx, &templates, client.InNamespace(namespace), lookup.Shared); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the templates that are unmanaged", "namespace", namespace)
		return nil
	}
	var found []ctrl.Request
	for i := range templates.Items {
		if template := &templates.Items[i]; !isolation.Managed(template) && meant(template.Name) {
			found = append(found, requestFor(namespace, template.Name)...)
		}
	}
	return found
}

func templateOfSandbox(_ context.Context, object client.Object) []ctrl.Request {
	return requestFor(object.GetNamespace(), relations.TemplateOfSandbox(object))
}

func templateOfPool(_ context.Context, object client.Object) []ctrl.Request {
	return requestFor(object.GetNamespace(), relations.TemplateOfPool(object))
}

func (r *Reconciler) templateOfClaim(ctx context.Context, object client.Object) []ctrl.Request {
	var pool extensionsv1beta1.SandboxWarmPool
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: relations.PoolOfClaim(object)}
	if err := r.client.Get(ctx, key, &pool, lookup.Glance); err != nil {
		return nil // counted when the pool comes
	}
	return requestFor(pool.Namespace, relations.TemplateOfPool(&pool))
}

func (r *Reconciler) templatesOfNamespace(ctx context.Context, object client.Object) []ctrl.Request {
	return r.concerned(ctx, client.InNamespace(object.GetName()))
}

// everyTemplate is for a change that concerns the policies of all of them.
func (r *Reconciler) everyTemplate(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.concerned(ctx)
}

// concerned are the templates, and those that have gone and left a policy.
func (r *Reconciler) concerned(ctx context.Context, where ...client.ListOption) []ctrl.Request {
	var templates extensionsv1beta1.SandboxTemplateList
	if err := r.client.List(ctx, &templates, append(where, lookup.Shared)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the templates")
		return nil
	}
	var policies networkingv1.NetworkPolicyList
	ours := client.MatchingLabels{keys.ManagedBy: isolation.Manager}
	if err := r.client.List(ctx, &policies, append(where, ours, lookup.Shared)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the policies of templates")
		return nil
	}
	concerned := sets.New[ctrl.Request]()
	for i := range templates.Items {
		concerned.Insert(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&templates.Items[i])})
	}
	for i := range policies.Items {
		concerned.Insert(templateOfPolicy(ctx, &policies.Items[i])...)
	}
	return concerned.UnsortedList()
}

func requestFor(namespace, name string) []ctrl.Request {
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// later asks for a pass a while after an object came, went, or came to concern another, so that
// many changes cost one.
func later(templates handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, request := range templates(ctx, object) {
				q.AddAfter(request, countAfter)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if concern(e.ObjectOld) != concern(e.ObjectNew) {
				add(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
	}
}

// concern is why an object matters to a template: the name of the template, or of the pool
// between them, or what the object says. Of a Pod its labels do, by which policies select it.
func concern(object client.Object) string {
	switch object.(type) {
	case *extensionsv1beta1.SandboxWarmPool:
		return relations.TemplateOfPool(object)
	case *extensionsv1beta1.SandboxClaim:
		return relations.PoolOfClaim(object)
	case *networkingv1.NetworkPolicy:
		return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
	case *corev1.Pod:
		return labels.Set(object.GetLabels()).String()
	default:
		return relations.TemplateOfSandbox(object)
	}
}
