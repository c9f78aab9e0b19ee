// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/waker"
)

// fieldOwner is the name under which the apiserver records this controller's writes.
const fieldOwner = client.FieldOwner("sandboxwarmpool-controller")

const (
	// rollingPercent is the part of a pool that a rolling update may have on top.
	rollingPercent = 20
	// overduePercent is the part of a pool that may be replaced in one grace period
	// because it ceased to be Ready.
	overduePercent = 10
)

// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxwarmpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxwarmpools/status,verbs=get;patch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxwarmpools/finalizers,verbs=update
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates;sandboxclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Settings are what the platform engineer decides for the pool controller.
type Settings struct {
	// Current is the platform configuration with what the network of the cluster is now, as
	// isolation.Resolve makes it.
	Current func() *config.Platform
	// ConcurrentWorkers is how many pools are worked on at once.
	ConcurrentWorkers int
	// Refill bounds how fast pools make members.
	Refill Refill
	// Yield bounds how long refills wait for claims that want something themselves.
	Yield Yield
	// ReadinessGrace is how long a member may be not Ready before it is replaced.
	ReadinessGrace time.Duration
	// UnschedulableRecheck is how often members that wait for a node are looked at.
	UnschedulableRecheck time.Duration
	// SafeToEvict marks the Pods of members as evictable for the cluster autoscaler.
	SafeToEvict bool
	// Verdicts says which members today's rules refuse; nil asks nobody.
	Verdicts verdict.Judge
	// Metrics takes the gauges of the pools; nil for none.
	Metrics prometheus.Registerer
}

// Reconciler keeps pools.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	settings Settings

	memories memories
	// waker wakes pools of which a member turned out to be refused, and those that a pass
	// found something to be due for.
	waker  waker.Waker
	gauges *gauges
	// suffix makes the last part of a name.
	suffix func() string
}

// New makes a Reconciler. The client reads from a cache with the indexes of
// relations and those that SetupWithManager declares; live reads from the apiserver.
func New(cached client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock, settings Settings) *Reconciler {
	r := &Reconciler{
		client: cached, live: live, recorder: recorder, clock: clk, settings: settings,
		gauges: newGauges(settings.Metrics), suffix: randomSuffix,
	}
	if settings.Verdicts != nil {
		settings.Verdicts.OnRefused(r.waker.Now)
	}
	return r
}

// Reconcile brings one pool closer to its replicas and writes its status once at most.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pool, err := lookup.Object(ctx, r.client, request.Namespace, request.Name, &extensionsv1beta1.SandboxWarmPool{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if pool == nil || pool.DeletionTimestamp != nil {
		r.memories.forget(request.NamespacedName)
		r.gauges.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	s, err := r.gather(ctx, pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.act(ctx, s)
	return ctrl.Result{}, r.conclude(ctx, s)
}
