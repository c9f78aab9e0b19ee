// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync/atomic"
	"time"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/audit"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
)

const (
	// leaseName is a fact of the API: two controllers never run at once in a namespace.
	leaseName = "a3317529.agent-sandbox.x-k8s.io"
	// Whoever stands by looks at the Lease every one to 2.2 retryPeriods. So one that dies is
	// replaced within leaseDuration and 4.4 retryPeriods of its last sign, since that may be
	// seen late and so may be its end, and one that ends by itself within 2.2 of them: less
	// than two seconds more than the Lease lasts, and less than two seconds.
	leaseDuration = 5 * time.Second
	// renewDeadline and one retryPeriod are how long a leader goes on without an answer: less
	// than the four seconds after which another may take the lead.
	renewDeadline = 3 * time.Second
	retryPeriod   = 400 * time.Millisecond

	controllerName = "agent-sandbox-controller"
)

func newManager(ctx context.Context, connection *rest.Config, options Options, platform *config.Platform, tracer tracing.Tracer) (ctrl.Manager, error) {
	managerOptions, err := managerOptions(options)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(connection, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	if err := relations.Declare(ctx, mgr.GetFieldIndexer(), relations.OfSandboxes()...); err != nil {
		return nil, err
	}
	network, err := surroundings.New(ctx, platform, mgr.GetAPIReader(), metrics.Registry)
	if err != nil {
		return nil, err
	}
	policies, err := exposure.EveryPolicy(ctx, mgr)
	if err != nil {
		return nil, err
	}
	reconciler := sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(controllerName), clock.RealClock{},
		sandbox.Settings{
			Platform:          platform,
			Current:           network.Platform,
			EveryPolicy:       policies,
			ClusterDomain:     options.ClusterDomain,
			ConcurrentWorkers: options.SandboxConcurrentWorkers,
			WriteBehind:       min(options.WriteBehind, maxWriteBehind),
			Tracer:            tracer,
		})
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, err
	}
	if err := errors.Join(publishBuild(metrics.Registry), config.Publish(metrics.Registry, config.ComponentController, platform)); err != nil {
		return nil, err
	}
	namespaces := netpol.NewNamespaces(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{},
		netpol.Settings{Current: network.Platform, Changed: network.Follow(), Extensions: options.Extensions})
	if err := namespaces.SetUp(mgr); err != nil {
		return nil, err
	}
	var exposed func(string, []exposure.Finding)
	if options.Extensions {
		auditor, err := setUpExtensions(ctx, mgr, options, shared{network: network, policies: policies, tracer: tracer})
		if err != nil {
			return nil, err
		}
		if auditor != nil {
			exposed = auditor.Exposed
		}
	}
	if err := exposure.SetUp(mgr, policies, metrics.Registry, exposed); err != nil {
		return nil, err
	}
	return mgr, errors.Join(network.SetUp(mgr), addHealth(mgr))
}

func managerOptions(options Options) (ctrl.Options, error) {
	scheme := k8sruntime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), agentsv1beta1.AddToScheme(scheme), extensionsv1beta1.AddToScheme(scheme),
	); err != nil {
		return ctrl.Options{}, fmt.Errorf("register kinds: %w", err)
	}
	byObject, err := sandbox.CacheByObject(options.CacheLabelSelectors)
	if err != nil {
		return ctrl.Options{}, err
	}
	maps.Copy(byObject, claim.CacheByObject())
	if options.Audit.PolicyNamespace != "" {
		maps.Copy(byObject, policysource.CacheByObject(options.Audit.PolicyNamespace))
		maps.Copy(byObject, audit.CacheByObject())
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics: metricsserver.Options{
			BindAddress:   options.MetricsBindAddress,
			ExtraHandlers: profiles(options.Profiling),
		},
		HealthProbeBindAddress:        options.HealthProbeBindAddress,
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
	}, nil
}

// profiles are the handlers of the profiles that were asked for.
func profiles(p Profiling) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	if p.CPU || p.All {
		handlers["/debug/pprof/profile"] = http.HandlerFunc(pprof.Profile)
	}
	if p.All {
		runtime.SetBlockProfileRate(p.BlockRate)
		runtime.SetMutexProfileFraction(p.MutexFraction)
		handlers["/debug/pprof/"] = http.HandlerFunc(pprof.Index)
		handlers["/debug/pprof/cmdline"] = http.HandlerFunc(pprof.Cmdline)
		handlers["/debug/pprof/symbol"] = http.HandlerFunc(pprof.Symbol)
		handlers["/debug/pprof/trace"] = http.HandlerFunc(pprof.Trace)
	}
	return handlers
}

// addHealth serves /healthz, which says that the process runs, and /readyz, which
// says that its caches are filled and, where there are any, the policies loaded, so that
// it could take the lead at once.
func addHealth(mgr ctrl.Manager) error {
	filled := &cacheFilled{caches: mgr.GetCache()}
	return errors.Join(
		mgr.Add(filled),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", filled.check),
	)
}

type cacheFilled struct {
	caches cache.Cache
	done   atomic.Bool
}

var _ manager.LeaderElectionRunnable = (*cacheFilled)(nil)

// Start waits for the caches.
func (c *cacheFilled) Start(ctx context.Context) error {
	c.done.Store(c.caches.WaitForCacheSync(ctx))
	return nil
}

// NeedLeaderElection says that replicas on stand-by fill their caches too.
func (c *cacheFilled) NeedLeaderElection() bool { return false }

func (c *cacheFilled) check(*http.Request) error {
	if !c.done.Load() {
		return errors.New("the caches are not filled yet")
	}
	return nil
}
