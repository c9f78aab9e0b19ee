// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/rush"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/waker"
)

// fieldOwner is the name under which the apiserver records this controller's writes.
const fieldOwner = client.FieldOwner("sandboxclaim-controller")

// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxclaims/status,verbs=get;patch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxclaims/finalizers,verbs=update
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxwarmpools;sandboxtemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods;nodes;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=list;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Settings are what the platform engineer decides for the claim controller.
type Settings struct {
	// Current is the platform configuration with what the network of the cluster is now, as
	// isolation.Resolve makes it.
	Current func() *config.Platform
	// ConcurrentWorkers is how many claims are worked on at once.
	ConcurrentWorkers int
	// ColdStartAfter is how long a claim waits for its pool to refill before a new
	// Sandbox is started for it. 0 waits for nothing.
	ColdStartAfter time.Duration
	// BindTimeout is how long a claim may be without a Sandbox, unless it says
	// otherwise itself. 0 sets no bound.
	BindTimeout time.Duration
	// Verdicts says which Sandboxes of pools today's rules refuse; nil asks nobody.
	Verdicts verdict.Judge
	// NoEvents keeps Events back that come with every claim. Warnings are published in
	// any case.
	NoEvents bool
	// NoTimes keeps the annotations that tell times back.
	NoTimes bool
	// Rush learns which claims are under way, and lets annotations go after them. Nil has the
	// controller use one of its own.
	Rush *rush.Rush
	// Tracer makes spans of passes; the zero one makes none.
	Tracer tracing.Tracer
}

// Reconciler gives claims their Sandboxes.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	settings Settings

	index  *candidates.Index
	memory memory
	waker  waker.Waker
	// later has the names of claims for which lookLater asked for a pass that is yet to come.
	later   sync.Map
	metrics *metrics
	// inherited are the claims that an earlier leader may have served.
	inherited inherited
	legacy    legacy
}

// New makes a Reconciler. The client reads from a cache with the indexes of
// relations and sees its own writes; live reads from the apiserver.
func New(cached client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock, settings Settings) *Reconciler {
	if settings.Rush == nil {
		settings.Rush = &rush.Rush{}
	}
	r := &Reconciler{client: cached, live: live, recorder: recorder, clock: clk, settings: settings}
	r.index = candidates.New(r.waker.Now)
	r.metrics = newMetrics(r.index, r.waker.Queued, clk)
	if settings.Verdicts != nil {
		settings.Verdicts.OnChange(r.index.Reconsider)
	}
	return r
}

// phase is one part of the work on a claim. Its error ends the pass.
type phase func(context.Context, *scope) error

// Reconcile brings one claim closer to its spec and writes its status once at most.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.inherited.load(ctx, r.live); err != nil {
		return ctrl.Result{}, err
	}
	claim, err := lookup.Object(ctx, r.client, request.Namespace, request.Name, &extensionsv1beta1.SandboxClaim{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if claim != nil {
		if err := r.removeLegacy(ctx, claim); err != nil {
			return ctrl.Result{}, err
		}
	}
	if claim == nil || claim.DeletionTimestamp != nil {
		r.release(request)
		return ctrl.Result{}, r.leave(ctx, claim)
	}
	return ctrl.Result{}, r.settings.Tracer.Pass(ctx, "ReconcileSandboxClaim", claim, func(ctx context.Context) error { return r.pass(ctx, claim) })
}

// pass is one pass over a claim that stays.
func (r *Reconciler) pass(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) error {
	s, err := r.gather(ctx, claim)
	if err != nil {
		return err
	}
	if until := s.record.goneUntil(); s.now.Before(until) {
		r.waker.After(s.key(), until.Sub(s.now))
		return nil
	}
	for _, run := range r.phases(s) {
		if s.problem = run(ctx, s); s.problem != nil || s.silent {
			break
		}
	}
	return r.conclude(ctx, s)
}

// phases are the parts in their order: each may rest on what those before it set.
func (r *Reconciler) phases(s *scope) []phase {
	if s.expired() {
		return []phase{r.phaseExpiry}
	}
	return []phase{r.phaseRecover, r.phaseMetadata, r.phaseAssign, r.phaseMaintain}
}

// release forgets a claim that is gone.
func (r *Reconciler) release(request ctrl.Request) {
	r.index.Leave(request.NamespacedName)
	r.close(r.memory.forget(request.NamespacedName))
}

// close ends what was remembered of a claim that is gone; nil when nothing was.
func (r *Reconciler) close(known *record) {
	if known != nil {
		r.inherited.settle(known.uid)
		r.count(known, false)
		r.abandon(known)
	}
}

// count has a claim counted among those under way or not, whatever it was before.
func (r *Reconciler) count(known *record, underway bool) {
	switch {
	case underway && !known.underway:
		r.settings.Rush.Begin()
	case !underway && known.underway:
		r.settings.Rush.End()
	}
	known.underway = underway
}

// abandon gives back a Sandbox whose adoption was never answered. Should that write
// still arrive, the Sandbox is the claim's and goes with it.
func (r *Reconciler) abandon(known *record) {
	if known.adopting != nil {
		r.index.Return(known.adopting.Member, false)
		known.adopting = nil
	}
}

// conclude writes the status, tells of it, and sets the timer for the next pass.
func (r *Reconciler) conclude(ctx context.Context, s *scope) error {
	err := outcome(s.problem)
	if !s.waits {
		r.index.Leave(s.key())
	}
	if s.problem == nil && !s.silent && !s.expired() {
		r.tellTolerated(s)
	}
	if !s.silent && !s.mayPass() {
		if unwritten := r.publish(ctx, s); unwritten != nil {
			err = unwritten
		}
	}
	if !s.expired() {
		s.wakeAt(s.expiresAt())
	}
	if !s.wake.IsZero() {
		r.waker.After(s.key(), s.wake.Sub(s.now))
	}
	return err
}

// publish writes the status if it changed, and then what follows from it.
func (r *Reconciler) publish(ctx context.Context, s *scope) error {
	desired := desiredStatus(s)
	if equality.Semantic.DeepEqual(s.claim.Status, desired) {
		return r.annotate(ctx, s)
	}
	claim := s.claim.DeepCopy()
	claim.Status = desired
	if err := r.client.Status().Patch(ctx, claim, statusPatch(s.claim, desired), fieldOwner); err != nil {
		return r.forgive(s, fmt.Errorf("write status: %w", err))
	}
	s.record.pause = 0
	r.count(s.record, false)
	r.tell(s, desired)
	r.measure(s, desired)
	return nil
}

// forgive takes it lightly when somebody changed or deleted the claim at the moment of
// a write: a later pass sees it, and each waits longer, since the cache may be far behind.
func (r *Reconciler) forgive(s *scope, err error) error {
	if apierrors.IsConflict(err) {
		r.waker.After(s.key(), s.record.nextPause())
		return nil
	}
	return r.forgiveGone(s, err)
}

// forgiveGone takes it lightly when the claim is gone, and remembers it.
func (r *Reconciler) forgiveGone(s *scope, err error) error {
	if patch.IgnoreGone(err) != nil {
		return err
	}
	s.record.goneAt = r.clock.Now()
	r.index.Leave(s.key()) // what is offered is for those that are there
	s.wakeAt(s.record.goneUntil())
	return nil
}
