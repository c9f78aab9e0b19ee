// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
)

// controllerName is the name of the controller that loads.
const controllerName = "policies"

// CacheByObject says what the cache keeps of ConfigMaps: the policies of the release
// namespace.
func CacheByObject(namespace string) map[client.Object]cache.ByObject {
	sources := labels.SelectorFromSet(labels.Set{keys.PolicySource: "true"})
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{namespace: {LabelSelector: sources}}},
	}
}

// SetUp makes a Source of the embedded library and the policy ConfigMaps that the
// manager's cache holds. It loads when the manager starts, on every replica, and
// whenever a ConfigMap changes.
func SetUp(mgr ctrl.Manager, o Options) (*Source, error) {
	var err error
	if o.Library, err = policies.Library(); err != nil {
		return nil, fmt.Errorf("read the embedded policies: %w", err)
	}
	o.Reader = mgr.GetClient()
	source := New(o)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&corev1.ConfigMap{}, source.Watch()).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(source)
	if err != nil {
		return nil, fmt.Errorf("watch the policy ConfigMaps: %w", err)
	}
	// Without any ConfigMap there is no event, and the library still has to be loaded.
	if err := mgr.Add(firstLoad{source}); err != nil {
		return nil, fmt.Errorf("add the first load of the policies: %w", err)
	}
	if err := mgr.Add(vigil{source}); err != nil {
		return nil, fmt.Errorf("add the vigil over the policies: %w", err)
	}
	return source, nil
}

// firstLoad loads once. Runnables start when the informers have synced.
type firstLoad struct {
	source *Source
}

// Start loads.
func (f firstLoad) Start(ctx context.Context) error {
	_, err := f.source.Reconcile(ctx, reconcile.Request{})
	return err
}

// NeedLeaderElection says that replicas on stand-by load too.
func (firstLoad) NeedLeaderElection() bool { return false }
