// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// Setup says which controllers run in an Environment.
type Setup struct {
	// Add adds them to their manager.
	Add func(context.Context, ctrl.Manager) error
	// ByObject is what their cache keeps.
	ByObject map[client.Object]cache.ByObject
	// Wrap is put around their connection; nil for nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Undisturbed ones have no Faults and no Lag.
	Undisturbed bool
	// Elected ones work only while no others of that name do.
	Elected string
	// StandsBy is true for those that others of that name are before: they are waited for
	// until their caches are filled, and not until they work.
	StandsBy bool
}

// Run starts controllers that see this namespace and those beside it only, and returns
// what ends them. They end with the test.
func (e *Environment) Run(setup Setup) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mgr *noticing
	e.Eventually("the controllers are set up", func() error {
		made, err := e.newManager(setup)
		if err != nil {
			return err // a disturbed connection
		}
		mgr = &noticing{Manager: made}
		if err := relations.Declare(ctx, mgr.GetFieldIndexer(), slices.Concat(relations.OfSandboxes(), relations.OfExtensions())...); err != nil {
			return err
		}
		return setup.Add(ctx, mgr)
	})
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("a controller ended with: %v", err)
		}
	})
	e.Cleanup(stop)
	if !setup.StandsBy {
		<-mgr.Elected() // a cache that has not started waits for nothing
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		e.Fatal("the caches were not filled")
	}
	if setup.StandsBy {
		return stop
	}
	// That knows only of what was asked for until now. A controller that is stopped before it
	// has seen everything has never worked.
	for _, c := range mgr.controllers {
		if err := started(c); err != nil {
			e.Fatalf("a controller did not start: %v", err)
		}
	}
	return stop
}

// started waits until a controller has seen all that there is. What it is to watch in addition
// begins with the rest, or if that has begun, once all of it was seen.
func started(c watching) error {
	ended := make(chan error, 1)
	first := source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			ended <- c.Watch(source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error { return nil }))
		}()
		return nil
	})
	if err := c.Watch(first); err != nil {
		return err
	}
	return <-ended
}

// Recorder is what the controllers of a manager tell their Events.
func (e *Environment) Recorder(mgr ctrl.Manager) events.EventRecorder {
	if e.Told != nil {
		return e.Told
	}
	return mgr.GetEventRecorder("test")
}

// noticing is a manager that remembers the controllers that are added to it.
type noticing struct {
	ctrl.Manager

	controllers []watching
}

// watching is a controller that can be given more to watch.
type watching interface{ Watch(source.Source) error }

// Add implements manager.Manager.
func (n *noticing) Add(runnable manager.Runnable) error {
	if c, watches := runnable.(watching); watches {
		n.controllers = append(n.controllers, c)
	}
	return n.Manager.Add(runnable)
}

func (e *Environment) newManager(setup Setup) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	sees := map[string]cache.Config{e.Namespace: {}}
	for _, namespace := range e.Beside {
		sees[namespace] = cache.Config{}
	}
	options := ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(), ByObject: setup.ByObject,
			DefaultNamespaces: sees,
		},
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(10 * time.Second),
		Controller:              controllerconfig.Controller{SkipNameValidation: new(true)},
	}
	if setup.Elected != "" {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, setup.Elected, e.Namespace
		options.LeaderElectionConfig, options.LeaderElectionReleaseOnCancel = e.server.Config, true
		// Who ends gives the lead up. Nobody loses it because the machine is busy.
		options.LeaseDuration, options.RenewDeadline = new(2*hang), new(hang)
		options.RetryPeriod = new(200 * time.Millisecond)
	}
	return ctrl.NewManager(e.connection(setup), options)
}

func (e *Environment) connection(setup Setup) *rest.Config {
	connection := e.server.As(e.User, Controllers)
	connection.QPS = -1
	if setup.Wrap != nil {
		connection.Wrap(setup.Wrap)
	}
	if setup.Undisturbed {
		return connection
	}
	if e.Wrap != nil {
		connection.Wrap(e.Wrap)
	}
	if e.Faults != nil {
		connection.Wrap(e.Faults.Wrap)
	}
	if e.Lag != nil {
		// Lag tells events apart by their lines, which only JSON has.
		connection.ContentType, connection.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		connection.Wrap(e.Lag.Wrap)
	}
	return connection
}

// Platform is a platform configuration for tests: one tier, with the profile public,
// which allows none as well.
func Platform() *config.Platform {
	return &config.Platform{
		DefaultTier: "standard",
		Tiers: map[string]config.Tier{
			"standard": {
				PodSecurity: config.PodSecurity{Deny: "baseline", Warn: "restricted", Version: "v1.37"},
				Egress:      config.TierEgress{Profile: "public", Allowed: []string{"none"}},
				Creates:     []string{"Sandbox", "SandboxClaim"},
			},
		},
		EgressProfiles: map[string]config.EgressProfile{"public": {DNS: true, Internet: true}, "none": {}},
		Cluster: config.Cluster{
			CIDRs: []string{"10.244.0.0/16"},
			DNS:   config.Peer{Namespace: "kube-system", PodLabels: map[string]string{"k8s-app": "kube-dns"}},
		},
		Router: config.Router{Namespace: "agent-sandbox-system", PodLabels: map[string]string{"app": "sandbox-router"}},
	}
}
