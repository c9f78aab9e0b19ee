// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/waker"
)

// fieldOwner is the name under which the apiserver records this controller's writes.
const fieldOwner = client.FieldOwner("sandbox-controller")

// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Settings are what the platform engineer decides for the Sandbox controller.
type Settings struct {
	// Platform is the platform configuration.
	Platform *config.Platform
	// Current is Platform with what the network of the cluster is now, as isolation.Resolve
	// makes it: NetworkPolicies are made from it.
	Current func() *config.Platform
	// EveryPolicy reads NetworkPolicies, those of others too. Nil asks the apiserver.
	EveryPolicy client.Reader
	// ClusterDomain ends the names of Services, such as cluster.local.
	ClusterDomain string
	// ConcurrentWorkers is how many Sandboxes are worked on at once.
	ConcurrentWorkers int
	// WriteBehind is how long the metadata of a Pod may wait for that of its Sandbox after
	// a claim took it.
	WriteBehind time.Duration
	// Tracer makes spans of passes; the zero one makes none.
	Tracer tracing.Tracer
}

// Reconciler keeps Sandboxes.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	settings Settings

	policies *netpol.Keeper
	starts   *starts
	births   births
	restarts restarts
	strays   strays
	waker    waker.Waker
}

// New makes a Reconciler. The client reads from a cache with the indexes of
// relations and those that SetupWithManager declares, and sees its own writes; live reads from the apiserver.
func New(cached client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock, settings Settings) *Reconciler {
	if settings.EveryPolicy == nil {
		settings.EveryPolicy = live
	}
	return &Reconciler{
		client:   cached,
		live:     live,
		recorder: recorder,
		clock:    clk,
		settings: settings,
		policies: netpol.New(cached, live, fieldOwner),
		starts:   newStarts(clk),
	}
}

// phase is one part of the work on a Sandbox. Its error becomes part of the Ready
// condition and does not keep the next phase from running.
type phase func(context.Context, *scope) error

// Reconcile brings one Sandbox closer to its spec and writes its status once at most.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	sandbox, err := lookup.Object(ctx, r.client, request.Namespace, request.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return ctrl.Result{}, err
	}
	astray := r.endStray(ctx, request.NamespacedName)
	if sandbox == nil || sandbox.DeletionTimestamp != nil {
		r.births.forget(request.NamespacedName)
		r.starts.forget(request.NamespacedName)
		r.restarts.forget(request.NamespacedName)
		return ctrl.Result{}, errors.Join(astray, r.leave(ctx, request.NamespacedName, sandbox))
	}
	err = r.settings.Tracer.Pass(ctx, "ReconcileSandbox", sandbox, func(ctx context.Context) error { return r.pass(ctx, sandbox) })
	return ctrl.Result{}, errors.Join(astray, err)
}

// pass is one pass over a Sandbox that stays.
func (r *Reconciler) pass(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	s, err := r.gather(ctx, sandbox)
	if err != nil {
		return err
	}
	r.starts.begin(sandbox, s.now)
	for _, run := range r.phases(s) {
		s.problems = s.problems.with(run(ctx, s))
	}
	return r.conclude(ctx, s)
}

// phases are the parts in their order: each may rest on what those before it set.
func (r *Reconciler) phases(s *scope) []phase {
	if s.expired() {
		return []phase{r.phaseLeave, r.phaseExpiry}
	}
	return []phase{r.phaseIsolation, r.traced("reconcilePVCs", r.phaseVolumes), r.traced("reconcilePod", r.phasePod), r.phaseService}
}

// traced makes a span of a phase.
func (r *Reconciler) traced(name string, run phase) phase {
	return func(ctx context.Context, s *scope) error {
		return r.settings.Tracer.Part(ctx, name, func(ctx context.Context) error { return run(ctx, s) })
	}
}

// conclude writes the status, tells of it, and sets the timer for the next pass.
func (r *Reconciler) conclude(ctx context.Context, s *scope) error {
	if s.superseded || s.problems.onlyRaces() {
		return s.problems.outcome()
	}
	key := client.ObjectKeyFromObject(s.sandbox)
	status := desiredStatus(s, r.settings.ClusterDomain)
	if until, wait := mayWait(s, status, r.births.of(key)); wait {
		s.wakeAt(until)
	} else {
		r.births.forget(key)
		err := r.writeStatus(ctx, s, status)
		s.problems = s.problems.with(err)
		if err == nil { // or the next pass would tell it again
			r.tell(s, status)
		}
	}
	if at := s.expiresAt(); s.now.Before(at) {
		s.wakeAt(at)
	}
	if at := s.overdueAt(); !at.IsZero() && !s.overdue() {
		s.wakeAt(at)
	}
	if s.now.Before(s.restartAt) {
		s.wakeAt(s.restartAt)
	}
	if !s.wake.IsZero() {
		r.waker.After(key, s.wake.Sub(s.now))
	}
	return s.problems.outcome()
}
