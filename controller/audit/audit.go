// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/waker"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates;sandboxwarmpools;sandboxclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=reports.openreports.io,verbs=get;list;watch
// +kubebuilder:rbac:groups=openreports.io,resources=reports,verbs=get;list;create;patch;delete

// Settings are what the platform engineer decides for the audit.
type Settings struct {
	// Current is the platform configuration with what the network of the cluster is now, as
	// isolation.Resolve makes it.
	Current func() *config.Platform
	// Changed tells that Current says something else.
	Changed <-chan event.GenericEvent
	// Judged selects the namespaces whose objects admission judges; nobody judges others
	// here either. Nil selects all.
	Judged labels.Selector
	// Interval is how often everything is judged again; 0 audits nothing, and Sandboxes
	// that wait in pools are judged when they are asked for only.
	Interval time.Duration
	// CPUShare is the share of one CPU that the audit takes at most, above 0 and at most
	// 1.
	CPUShare float64
	// Reports writes reports where the cluster has the kind.
	Reports bool
	// RelaxedServiceNames says that Services may have names that begin with a digit.
	RelaxedServiceNames bool
}

// Auditor judges what is stored.
type Auditor struct {
	client     client.Client
	reconciler *Reconciler
	members    *members
	settings   Settings
	waker      waker.Waker
	// settle is settleAfter, but for tests.
	settle time.Duration
}

// New makes an Auditor. The client reads from the cache of a manager; writer writes
// reports, and may be nil when the settings want none.
func New(cachedClient, writer client.Client, rules *engine.Engine, clk clock.Clock, settings Settings) *Auditor {
	x := newExaminer(cachedClient, rules, clk, settings)
	r := &Reconciler{
		examiner: x, clock: clk, interval: settings.Interval, pacer: &pacer{clock: clk, share: settings.CPUShare},
		holes: newHoles(), passed: map[string]time.Time{}, since: map[string]time.Time{},
	}
	r.metrics = newMetrics(x.ledger.size, r.age)
	r.pacer.worked = func(work time.Duration) { r.metrics.seconds.Add(work.Seconds()) }
	if settings.Reports {
		r.reporter = newReporter(writer, r.metrics)
	}
	return &Auditor{client: cachedClient, reconciler: r, members: newMembers(x, r.metrics), settings: settings, settle: settleAfter}
}

// Members judges the Sandboxes that wait in pools.
func (a *Auditor) Members() verdict.Judge { return a.members }

// PoliciesChanged hears that other policies are in force.
func (a *Auditor) PoliciesChanged() {
	a.members.changed("")
	a.wakeAll(context.Background(), 0)
}

// Exposed hears of what NetworkPolicies of others open in a namespace.
func (a *Auditor) Exposed(namespace string, found []exposure.Finding) {
	before := a.reconciler.holes.entries(namespace)
	a.reconciler.holes.set(namespace, found)
	if len(before) > 0 || len(found) > 0 {
		a.waker.After(client.ObjectKey{Name: namespace}, a.settle)
	}
}

// SetupWithManager declares watches and metrics.
func (a *Auditor) SetupWithManager(ctx context.Context, mgr ctrl.Manager, registry prometheus.Registerer) error {
	if err := a.reconciler.metrics.register(registry); err != nil {
		return err
	}
	if err := a.follow(ctx, mgr); err != nil {
		return err
	}
	if a.settings.Interval == 0 {
		return nil
	}
	return a.watch(mgr)
}

// follow keeps what is remembered of Sandboxes that wait, and tells when their verdicts
// may be other ones, whether there is an audit or not.
func (a *Auditor) follow(ctx context.Context, mgr ctrl.Manager) error {
	for object, handle := range map[client.Object]toolscache.ResourceEventHandler{
		&agentsv1beta1.Sandbox{}:             toolscache.ResourceEventHandlerFuncs{DeleteFunc: a.dropped},
		&corev1.Namespace{}:                  a.dataEvents(ctx, engine.DataNamespaces, relabelled),
		&nodev1.RuntimeClass{}:               a.dataEvents(ctx, engine.DataRuntimeClasses, matters),
		&extensionsv1beta1.SandboxTemplate{}: a.dataEvents(ctx, engine.DataTemplates, matters),
		&extensionsv1beta1.SandboxWarmPool{}: a.dataEvents(ctx, engine.DataPools, matters),
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(handle); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

func (a *Auditor) dropped(object any) {
	if gone, isTombstone := object.(toolscache.DeletedFinalStateUnknown); isTombstone {
		object = gone.Obj
	}
	if sandbox, isSandbox := object.(*agentsv1beta1.Sandbox); isSandbox {
		a.reconciler.ledger.drop(sandbox.Namespace, sandbox.UID)
	}
}

// wakeAll asks for a pass over every namespace.
func (a *Auditor) wakeAll(ctx context.Context, delay time.Duration) {
	if !a.waker.Started() {
		return // the first events ask for all of them
	}
	var list corev1.NamespaceList
	if err := a.client.List(ctx, &list, lookup.Shared); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the namespaces, the next full pass will find what changed")
		return
	}
	for i := range list.Items {
		a.waker.After(client.ObjectKey{Name: list.Items[i].Name}, delay)
	}
}
