// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/waker"
)

// fieldOwner is the name under which the apiserver records this controller's writes.
const fieldOwner = client.FieldOwner("sandboxtemplate-controller")

// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates/status,verbs=get;patch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates/finalizers,verbs=update
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxwarmpools;sandboxclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Settings are what the platform engineer decides for the template controller.
type Settings struct {
	// Current is the platform configuration with what the network of the cluster is now, as
	// isolation.Resolve makes it.
	Current func() *config.Platform
	// Changed tells when Current has another value.
	Changed <-chan event.GenericEvent
	// EveryPolicy holds NetworkPolicies, those of others too. Nil asks the apiserver, now and
	// then.
	EveryPolicy cache.Cache
	// ConcurrentWorkers is how many templates are worked on at once.
	ConcurrentWorkers int
	// Tracer makes spans of passes; the zero one makes none.
	Tracer tracing.Tracer
}

// Reconciler keeps templates.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	settings Settings
	policies *netpol.Keeper
	waker    waker.Waker
	// counted are the times at which the users of templates were counted last, by their names.
	counted sync.Map
}

// New makes a Reconciler. The client reads from a cache with the indexes of
// relations and those that SetupWithManager declares, and sees its own writes; live reads from the apiserver.
func New(cached client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock, settings Settings) *Reconciler {
	return &Reconciler{
		client: cached, live: live, recorder: recorder, clock: clk, settings: settings,
		policies: netpol.New(cached, live, fieldOwner),
	}
}

// Reconcile brings the policy of one template in line and writes the template's status
// once at most.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.gather(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.gone() {
		return ctrl.Result{}, r.leave(ctx, s)
	}
	var result ctrl.Result
	err = r.settings.Tracer.Pass(ctx, "ReconcileSandboxTemplate", s.template, func(ctx context.Context) (err error) {
		result, err = r.pass(ctx, s)
		return err
	})
	return result, err
}

// pass is one pass over a template that stays.
func (r *Reconciler) pass(ctx context.Context, s *scope) (ctrl.Result, error) {
	if err := r.label(ctx, s); err != nil {
		return ctrl.Result{}, patch.IgnoreGone(err) // another event tells of what is there now
	}
	r.isolate(ctx, s)
	if err := r.writeStatus(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return s.outcome()
}
