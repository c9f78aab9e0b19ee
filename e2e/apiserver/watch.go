// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch sees every change of the objects of a namespace from now on, also when the
// apiserver ends the watch of somebody who is slow. The caller stops it. The list names
// the kind.
func Watch(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string) (watch.Interface, error) {
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("find where to begin to watch: %w", err)
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), source)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return watcher, nil
}

// Watch shows every change of the objects of the namespace until the test ends, one after
// the other. What it returns waits until all that there is at that moment was shown.
func (e *Environment) Watch(list client.ObjectList, see func(watch.Event)) (caughtUp func()) {
	e.Helper()
	watcher, err := Watch(context.Background(), e.Client, list, e.Namespace)
	if err != nil {
		e.Fatal(err)
	}
	var ending atomic.Bool
	var shown atomic.Uint64
	shown.Store(versionOf(list.GetResourceVersion()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			object, isObject := event.Object.(client.Object)
			if !isObject {
				continue
			}
			see(event)
			shown.Store(versionOf(object.GetResourceVersion()))
		}
		if !ending.Load() {
			e.Errorf("the watch of %T ended, and what came after it was not seen", list)
		}
	}()
	e.Cleanup(func() {
		ending.Store(true)
		watcher.Stop()
		<-done
	})
	return func() {
		e.Helper()
		newest := e.newest(list)
		e.Eventually("the watch has shown all that there is", func() error {
			if now := shown.Load(); now < newest {
				return fmt.Errorf("it has come to version %d of %d", now, newest)
			}
			return nil
		})
	}
}

// newest is the newest version of the objects of a kind that there are now.
func (e *Environment) newest(like client.ObjectList) uint64 {
	e.Helper()
	list, isList := like.DeepCopyObject().(client.ObjectList)
	if !isList {
		e.Fatalf("%T is no list", like)
	}
	if err := e.Client.List(e.Context(), list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	newest := uint64(0)
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, isObject := item.(client.Object); isObject {
			newest = max(newest, versionOf(object.GetResourceVersion()))
		}
		return nil
	})
	if err != nil {
		e.Fatal(err)
	}
	return newest
}

// versionOf is a version as the apiserver counts them.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}
