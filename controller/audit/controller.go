// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const (
	// settleAfter is how long a change may be followed by others before it is looked at.
	// What comes and goes within it costs nothing: admission has judged it.
	settleAfter = 10 * time.Second
	// jitter spreads the full passes of namespaces that were first seen together.
	jitter = 0.1
)

// Reconciler audits a namespace. Requests name one.
type Reconciler struct {
	*examiner
	clock    clock.Clock
	interval time.Duration
	pacer    *pacer
	metrics  *metrics
	reporter *reporter
	holes    *holes

	mu sync.Mutex
	// passed is when each namespace was last audited in full, and since when one waits
	// for that: when its last full pass began, or when it was first seen.
	passed, since map[string]time.Time
}

// Reconcile judges what changed in a namespace, or everything when that is due, and
// publishes what it found. All of it is done at the pace that is allowed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.pacer.begin()
	result, err := r.audit(ctx, request.Name)
	return result, errors.Join(err, r.pacer.pause(ctx))
}

func (r *Reconciler) audit(ctx context.Context, name string) (ctrl.Result, error) {
	namespace, err := lookup.Object(ctx, r.cached.reader, "", name, &corev1.Namespace{})
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case namespace == nil:
		r.forget(name)
		if r.reporter != nil {
			r.reporter.forget(name)
		}
		return ctrl.Result{}, nil
	case !r.judges(namespace.Labels):
		r.forget(name)
		_, err := r.publish(ctx, name, nil, false)
		return ctrl.Result{}, err
	}
	if !r.engine.Ready() {
		return ctrl.Result{}, nil // the first load asks for every namespace
	}
	begun := r.clock.Now()
	last := r.lastPass(name, begun)
	full := !begun.Before(last.Add(r.interval))
	done, err := r.pass(ctx, name, full)
	if err != nil {
		return ctrl.Result{}, err
	}
	entries := append(r.ledger.of(name), r.holes.entries(name)...)
	r.metrics.publish(name, violations(entries))
	if full && done {
		last = begun
		r.setPassed(name, begun, len(entries) > 0)
	}
	due, err := r.publish(ctx, name, entries, full)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.again(len(entries) > 0, last, due, ends(entries)), nil
}

// again says when the namespace is to be looked at without a change: at its next full pass, and
// when something is due before that.
func (r *Reconciler) again(inhabited bool, last time.Time, due ...time.Time) ctrl.Result {
	now := r.clock.Now()
	var after time.Duration
	if inhabited {
		after = max(time.Second, wait.Jitter(last.Add(r.interval).Sub(now), jitter))
	}
	for _, at := range due {
		if !at.IsZero() && (after == 0 || at.Sub(now) < after) {
			after = max(time.Second, at.Sub(now))
		}
	}
	return ctrl.Result{RequeueAfter: after}
}

func (r *Reconciler) publish(ctx context.Context, namespace string, entries []*entry, again bool) (time.Time, error) {
	if r.reporter == nil {
		return time.Time{}, nil
	}
	return r.reporter.publish(ctx, namespace, edition{
		reports: reportsOf(entries), digest: r.engine.Digest(), categories: categoriesOf(r.engine.Catalogue()), now: r.clock.Now(),
	}, again)
}

// pass judges the objects of a namespace, with a pause after each. It is not done when the policies changed meanwhile: then another one is about to begin.
func (r *Reconciler) pass(ctx context.Context, namespace string, full bool) (done bool, err error) {
	facts, err := r.facts(ctx, namespace)
	if err != nil {
		return false, err
	}
	all, err := r.objects(ctx, namespace)
	if err != nil {
		return false, err
	}
	there := sets.New[types.UID]()
	for _, object := range all {
		there.Insert(object.GetUID())
	}
	r.ledger.keep(namespace, there)
	digest := r.engine.Digest()
	for _, object := range all {
		if r.engine.Digest() != digest {
			return false, nil
		}
		if err := r.look(ctx, object, facts, full); err != nil {
			return false, err
		}
		if err := r.pacer.pause(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// look judges one object, unless nothing changed since it was judged.
func (r *Reconciler) look(ctx context.Context, object client.Object, facts known, full bool) error {
	now, err := r.state(ctx, object, facts)
	if err != nil {
		return err
	}
	if !full && r.remembered(object, facts, now) != nil {
		return nil
	}
	if _, err := r.examine(ctx, object, facts, now); err != nil {
		return err
	}
	r.metrics.evaluations.Inc()
	return nil
}

// objects are those of a namespace, the members of pools first: claims wait for them.
// What is about to go is left out, nobody judges it any more.
func (r *Reconciler) objects(ctx context.Context, namespace string) ([]client.Object, error) {
	var members, others []client.Object
	for _, kind := range []string{engine.KindSandbox, engine.KindSandboxTemplate, engine.KindSandboxWarmPool, engine.KindSandboxClaim} {
		listed, err := r.cached.list(ctx, kind, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		for _, object := range listed {
			switch {
			case object.GetDeletionTimestamp() != nil:
			case kind == engine.KindSandbox && poolOf(object) != "":
				members = append(members, object)
			default:
				others = append(others, object)
			}
		}
	}
	return append(members, others...), nil
}

// forget drops everything about a namespace that is gone, or is judged no more.
func (r *Reconciler) forget(namespace string) {
	r.ledger.keep(namespace, nil)
	r.versions.drop(namespace)
	r.holes.set(namespace, nil)
	r.metrics.publish(namespace, nil)
	r.setPassed(namespace, time.Time{}, false)
}

func (r *Reconciler) lastPass(namespace string, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.since[namespace]; !seen {
		r.since[namespace] = now
	}
	return r.passed[namespace]
}

// setPassed notes a full pass. Where nothing is, there is nothing to be late with.
func (r *Reconciler) setPassed(namespace string, at time.Time, inhabited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !inhabited {
		delete(r.passed, namespace)
		delete(r.since, namespace)
		return
	}
	r.passed[namespace], r.since[namespace] = at, at
}

// age is the time in seconds since the namespace that has waited longest was audited in
// full.
func (r *Reconciler) age() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for _, at := range r.since {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if oldest.IsZero() {
		return 0
	}
	return r.clock.Since(oldest).Seconds()
}
