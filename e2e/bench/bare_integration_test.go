// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// bareNamespace is where nobody but the round trips has anything.
	bareNamespace = "bare"
	// pause lies between two round trips.
	pause = 100 * time.Millisecond
	// fewestTrips are those whose median says something.
	fewestTrips = 9
	// answered is what an answer adds to what was asked.
	answered = "answered"
)

// bare are round trips that cost the apiserver what a warm claim costs it until it is Ready,
// and nobody else anything: a client creates an object and watches it; somebody who watches
// too patches another object under its version, and then the first. It is the least that any
// platform takes whose claims and Sandboxes are objects.
type bare struct {
	*desk

	// asked and told are the watches of the two sides.
	asked, told watch.Interface
	// stock is the other object.
	stock *corev1.ConfigMap
	times []time.Duration
}

func newBare(ctx context.Context, d *desk) *bare {
	d.Helper()
	b := &bare{desk: d, stock: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: bareNamespace, Name: "stock"}}}
	check(d, d.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bareNamespace}}))
	check(d, d.admin.Create(ctx, b.stock))
	for _, side := range []*watch.Interface{&b.asked, &b.told} {
		watcher, err := apiserver.Watch(ctx, d.admin, &corev1.ConfigMapList{}, bareNamespace)
		check(d, err)
		d.Cleanup(watcher.Stop)
		*side = watcher
	}
	return b
}

// beside makes one round trip after the other while a load is served, and longer on a
// machine that is too slow for enough of them.
func (b *bare) beside(l load) load {
	run := l.run
	l.name += " beside round trips"
	l.run = func(ctx context.Context, d *desk, orders []*order) error {
		group, grouped := errgroup.WithContext(ctx)
		ended := make(chan struct{})
		group.Go(func() error {
			defer close(ended)
			return run(grouped, d, orders)
		})
		group.Go(func() error {
			for trip := 0; ; trip++ {
				select {
				case <-ended:
					if trip >= fewestTrips {
						return nil
					}
				case <-d.clock.After(pause):
				}
				if err := b.trip(grouped, fmt.Sprintf("trip-%d", trip)); err != nil {
					return err
				}
			}
		})
		return group.Wait()
	}
	return l
}

// trip asks, answers, and notes how long it took until the answer was seen.
func (b *bare) trip(ctx context.Context, name string) error {
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: bareNamespace, Name: name}}
	answer := make(chan error, 1)
	go func() { answer <- b.answer(ctx, name) }()
	began := b.clock.Now()
	if err := b.admin.Create(ctx, asked); err != nil {
		return err
	}
	if err := seen(b.told, name, func(c *corev1.ConfigMap) bool { return c.Data[answered] != "" }); err != nil {
		return err
	}
	b.times = append(b.times, b.clock.Since(began))
	if err := <-answer; err != nil {
		return err
	}
	return b.admin.Delete(ctx, asked)
}

// answer is the other side.
func (b *bare) answer(ctx context.Context, name string) error {
	if err := seen(b.asked, name, func(*corev1.ConfigMap) bool { return true }); err != nil {
		return err
	}
	mark := func(c *corev1.ConfigMap, how func(client.Object) client.Patch) error {
		before := c.DeepCopy()
		c.Data = map[string]string{answered: name}
		return b.admin.Patch(ctx, c, how(before))
	}
	locked := func(before client.Object) client.Patch {
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := mark(b.stock, locked); err != nil {
		return err
	}
	return mark(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: bareNamespace, Name: name}}, client.MergeFrom)
}

// seen reads a watch until it shows that object as it is wanted.
func seen(watcher watch.Interface, name string, wanted func(*corev1.ConfigMap) bool) error {
	for event := range watcher.ResultChan() {
		if object, isMap := event.Object.(*corev1.ConfigMap); isMap && event.Type != watch.Deleted && object.Name == name && wanted(object) {
			return nil
		}
	}
	return fmt.Errorf("the watch ended before it showed %s", name)
}

// holdToBare serves a load beside bare round trips, fails the test if a claim takes many
// times as long as one of those, and says in a line what it found.
func (d *desk) holdToBare(ctx context.Context, l load) string {
	d.Helper()
	b := newBare(ctx, d)
	result, _ := d.serve(ctx, b.beside(l))
	claim, trip := result.Percentile(50), percentile(b.times, 50)
	found := fmt.Sprintf("Beside %s, %d bare round trips: p50 %.1f ms, that of the claims %.1f ms, which is %.1f times as long.",
		l.name, len(b.times), milliseconds(trip), milliseconds(claim), float64(claim)/float64(max(1, trip)))
	if claim > perRoundTrip*trip {
		d.Errorf("%s want %d times at most", found, perRoundTrip)
	}
	return found
}
