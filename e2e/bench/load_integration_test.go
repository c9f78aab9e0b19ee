// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	poolName = "pool"
	// hold is how long a client keeps a claim that is Ready.
	hold = 500 * time.Millisecond
)

// desk hands out claims and tells when they are Ready, from one watch for all clients.
type desk struct {
	*world

	clock    clock.WithTicker
	replicas int
	// made numbers the claims.
	made int

	mu     sync.Mutex
	orders map[string]*order
}

// order is a claim that a client waits for.
type order struct {
	name string
	// asked and served are when the client sent the request and when the news came that
	// the claim is Ready.
	asked, served time.Time
	// sandbox is the Sandbox that the claim has.
	sandbox string
	ready   chan struct{}
}

// newDesk starts a world with a pool that is full, and opens it for clients.
func newDesk(w *world, replicas int) *desk {
	w.Helper()
	ctx := w.Context()
	d := &desk{world: w, clock: clock.RealClock{}, replicas: replicas, orders: map[string]*order{}}
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "template"}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	check(w, w.admin.Create(ctx, template))
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: poolName}}
	pool.Spec.Replicas, pool.Spec.TemplateRef.Name = new(int32(replicas)), template.Name
	check(w, w.admin.Create(ctx, pool))
	d.awaitFull(ctx)

	watcher, err := apiserver.Watch(ctx, w.admin, &extensionsv1beta1.SandboxClaimList{}, namespace)
	check(w, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			if claim, isClaim := event.Object.(*extensionsv1beta1.SandboxClaim); isClaim {
				d.note(claim)
			}
		}
	}()
	w.Cleanup(func() { watcher.Stop(); <-done })
	return d
}

// note tells the client when its claim is Ready.
func (d *desk) note(claim *extensionsv1beta1.SandboxClaim) {
	now := d.clock.Now()
	if !meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionReady) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o, waited := d.orders[claim.Name]; waited {
		o.served, o.sandbox = now, claim.Status.SandboxStatus.Name
		delete(d.orders, claim.Name)
		close(o.ready)
	}
}

// order takes a number.
func (d *desk) order() *order {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	o := &order{name: fmt.Sprintf("claim-%d", d.made), ready: make(chan struct{})}
	d.orders[o.name] = o
	return o
}

// claim asks for a Sandbox and waits for it.
func (d *desk) claim(ctx context.Context, o *order) error {
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name}}
	claim.Spec.WarmPoolRef.Name = poolName
	o.asked = d.clock.Now()
	if err := d.admin.Create(ctx, claim); err != nil {
		return err
	}
	select {
	case <-o.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.clock.After(patience):
		err := d.admin.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		return errors.Join(fmt.Errorf("no news that claim %s is Ready came: its status is %+v", o.name, claim.Status), err)
	}
}

// release gives the Sandbox back.
func (d *desk) release(ctx context.Context, o *order) error {
	return d.admin.Delete(ctx, &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name}})
}

// use claims a Sandbox, keeps it for a while and gives it back.
func (d *desk) use(ctx context.Context, o *order) error {
	if err := d.claim(ctx, o); err != nil {
		return err
	}
	<-d.clock.After(hold)
	return d.release(ctx, o)
}

// awaitFull waits until the pool has all its Sandboxes and says so, and there is no
// other.
func (d *desk) awaitFull(ctx context.Context) {
	d.Helper()
	d.await(ctx, "the pool is full and nothing else is left", func(ctx context.Context) error {
		var sandboxes agentsv1beta1.SandboxList
		var pods metav1.PartialObjectMetadataList
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		var pool extensionsv1beta1.SandboxWarmPool
		if err := errors.Join(
			d.admin.List(ctx, &sandboxes, client.InNamespace(namespace)), d.admin.List(ctx, &pods, client.InNamespace(namespace)),
			d.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: poolName}, &pool),
		); err != nil {
			return err
		}
		if len(sandboxes.Items) != d.replicas || len(pods.Items) != d.replicas || int(pool.Status.ReadyReplicas) != d.replicas {
			return fmt.Errorf("there are %d Sandboxes and %d Pods, and the pool says %d are Ready, want %d",
				len(sandboxes.Items), len(pods.Items), pool.Status.ReadyReplicas, d.replicas)
		}
		return nil
	})
}

// load is a way in which claims come.
type load struct {
	name string
	// count is how many claims there are.
	count int
	// perSecond is how many come a second; 0 when they do not come at a rate.
	perSecond int
	// run serves all orders.
	run func(ctx context.Context, d *desk, orders []*order) error
}

// idle claims come one by one, each when the pool is full again.
func idle(count int) load {
	return load{name: "idle, one by one", count: count, run: func(ctx context.Context, d *desk, orders []*order) error {
		for _, o := range orders {
			if err := d.use(ctx, o); err != nil {
				return err
			}
			d.awaitFull(ctx)
		}
		return nil
	}}
}

// steady claims come so many a second, whether those before were served or not.
func steady(perSecond, seconds int) load {
	name := fmt.Sprintf("%d claims/s", perSecond)
	return load{name: name, count: perSecond * seconds, perSecond: perSecond, run: func(ctx context.Context, d *desk, orders []*order) error {
		group, ctx := errgroup.WithContext(ctx)
		tick := d.clock.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for _, o := range orders {
			<-tick.C()
			group.Go(func() error { return d.use(ctx, o) })
		}
		return group.Wait()
	}}
}

// burst claims come all at once and are kept until all are Ready.
func burst(name string, count int) load {
	return load{name: name, count: count, run: func(ctx context.Context, d *desk, orders []*order) error {
		for _, step := range []func(context.Context, *order) error{d.claim, d.release} {
			group, ctx := errgroup.WithContext(ctx)
			for _, o := range orders {
				group.Go(func() error { return step(ctx, o) })
			}
			if err := group.Wait(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// serve is measure, and fails the test if a claim is served twice.
func (d *desk) serve(ctx context.Context, l load) (Result, []*order) {
	d.Helper()
	result, orders := d.measure(ctx, l)
	for _, double := range result.Doubles {
		d.Error(double)
	}
	return result, orders
}

// measure runs a load on a full pool, waits until the pool is full again, and says what
// it cost.
func (d *desk) measure(ctx context.Context, l load) (Result, []*order) {
	d.Helper()
	witness, err := apiserver.NewWitness(ctx, d.admin, namespace)
	check(d, err)
	defer witness.Stop()
	orders := make([]*order, 0, l.count)
	for range l.count {
		orders = append(orders, d.order())
	}
	before := d.cost(ctx)
	if err := d.run(ctx, l, orders); err != nil {
		d.Fatalf("%s: %v", l.name, err)
	}
	d.awaitFull(ctx)
	after := d.cost(ctx)

	result := Result{
		Load: l.name, PerSecond: l.perSecond, Doubles: witness.Doubles(), Adopted: witness.Adopted(),
		Writes: after.writes.Since(before.writes), Controller: after.controller - before.controller, APIServer: after.apiserver - before.apiserver,
	}
	if served := witness.Served(); served != l.count {
		d.Errorf("%d claims had a Sandbox, want %d", served, l.count)
	}
	var asked, served []time.Time
	for _, o := range orders {
		asked, served = append(asked, o.asked), append(served, o.served)
		result.Latencies = append(result.Latencies, o.served.Sub(o.asked))
		result.Took = max(result.Took, o.served.Sub(orders[0].asked))
	}
	result.Waiting = MostWaiting(asked, served)
	return result, orders
}

// run runs a load, with profiles of one that comes at a rate.
func (d *desk) run(ctx context.Context, l load, orders []*order) error {
	group, ctx := errgroup.WithContext(ctx)
	if l.perSecond > 0 {
		group.Go(func() error { return d.record(ctx, l.name, time.Duration(l.count/l.perSecond)*time.Second) })
	}
	group.Go(func() error { return l.run(ctx, d, orders) })
	return group.Wait()
}

// cost is what has been spent so far.
type cost struct {
	writes                apiserver.Counts
	controller, apiserver time.Duration
}

func (d *desk) cost(ctx context.Context) cost {
	d.Helper()
	c := cost{writes: d.writes(ctx)}
	var err error
	c.controller, err = d.controller.CPU()
	check(d, err)
	c.apiserver, err = d.server.CPU()
	check(d, err)
	return c
}
