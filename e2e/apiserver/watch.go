// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
