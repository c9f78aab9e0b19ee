// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook/certs"
)

// Run serves until the context ends, and then as long as the drain delay says.
func Run(ctx context.Context, restConfig *rest.Config, o Options) error {
	if err := o.Validate().ToAggregate(); err != nil {
		return err
	}
	platform, err := config.Load(o.Config)
	if err != nil {
		return err
	}
	c := clock.RealClock{}
	source := certs.NewSource(o.certificate(), c)
	serving := newListening(&o, source.TLSOptions())
	mgr, err := newManager(restConfig, o, source, serving)
	if err != nil {
		return err
	}
	s := &server{o: o, mgr: mgr, serving: serving, clock: c, platform: platform, drain: drain{clock: c, delay: o.DrainDelay}}
	if err := s.wire(ctx, source); err != nil {
		return err
	}
	return mgr.Start(s.drain.late(ctx))
}

func newManager(restConfig *rest.Config, o Options, source *certs.Source, serving *listening) (manager.Manager, error) {
	watched := map[client.Object]cache.ByObject{sandboxMetadata(): {Transform: trimToName}, &corev1.Node{}: {Transform: trimNode}}
	maps.Copy(watched, source.Watched())
	maps.Copy(watched, policysource.CacheByObject(o.Namespace))
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Metrics:                metricsserver.Options{BindAddress: o.MetricsBindAddress},
		HealthProbeBindAddress: o.HealthProbeBindAddress,
		WebhookServer:          serving,
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Cache: cache.Options{
			DefaultTransform: trim,
			ByObject:         watched,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// server wires the parts together.
type server struct {
	o        Options
	mgr      manager.Manager
	serving  *listening
	clock    clock.WithTicker
	platform *config.Platform
	synced   atomic.Bool
	drain    drain
	// quarantined brings the rules that are not run any more.
	quarantined <-chan string
}

func (s *server) wire(ctx context.Context, source *certs.Source) error {
	rules, err := s.newEngine(ctx)
	if err != nil {
		return fmt.Errorf("make the policy engine: %w", err)
	}
	m, err := NewMetrics(metrics.Registry, s.clock)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := config.Publish(metrics.Registry, config.ComponentWebhook, s.platform); err != nil {
		return err
	}
	policies, err := s.watchPolicies(rules)
	if err != nil {
		return err
	}
	relaxed, err := s.relaxedServiceNames()
	if err != nil {
		return err
	}
	services, err := surroundings.OfServices(ctx, s.platform, s.mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if err := services.SetUp(s.mgr); err != nil {
		return err
	}
	decide := &Judge{
		Judge: &judge.Judge{
			Current: services.Platform, Engine: rules, RelaxedServiceNames: relaxed, Clock: s.clock,
			Lookup: Lookup{Cached: s.mgr.GetClient(), Live: s.mgr.GetAPIReader()},
		},
		ControllerUsers: s.o.controllerUsers(),
		Patience:        timeToJudge,
	}
	for path, handle := range Handlers(decide, policies, m, s.o.MaxInFlight) {
		s.mgr.GetWebhookServer().Register(path, s.drain.farewell(handle))
	}
	trust, err := source.AddTo(s.mgr)
	if err != nil {
		return err
	}
	return s.watchAndProbe(ctx, rules, trust)
}

// newEngine makes the engine, with its decision log when there is one.
func (s *server) newEngine(ctx context.Context) (*engine.Engine, error) {
	var told engine.Option
	s.quarantined, told = policysource.Notices()
	options := []engine.Option{
		engine.WithClock(s.clock),
		engine.WithInventory(Inventory{Cached: s.mgr.GetClient()}),
		told,
	}
	log, err := openDecisionLog(ctx, s.o.DecisionLog, metrics.Registry)
	if err != nil {
		return nil, err
	}
	if log != nil {
		options = append(options, engine.WithDecisionLog(log.DecisionLog))
		if err := s.mgr.Add(log); err != nil {
			return nil, fmt.Errorf("end the decision log with the program: %w", err)
		}
	}
	return engine.New(options...)
}

// watchPolicies loads the policies at the start and whenever a ConfigMap changes.
func (s *server) watchPolicies(rules *engine.Engine) (*policysource.Source, error) {
	m, err := policysource.NewMetrics(metrics.Registry, config.ComponentWebhook)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	// Runnables start when the informers have synced.
	synced := manager.RunnableFunc(func(context.Context) error {
		s.synced.Store(true)
		return nil
	})
	if err := s.mgr.Add(synced); err != nil {
		return nil, fmt.Errorf("wait for the caches: %w", err)
	}
	return policysource.SetUp(s.mgr, policysource.Options{
		Namespace: s.o.Namespace, Engine: rules, Events: s.mgr.GetEventRecorder("agent-sandbox-webhook"), Metrics: m,
		Clock: s.clock, Quarantined: s.quarantined,
	})
}

func (s *server) relaxedServiceNames() (bool, error) {
	discover, err := discovery.NewDiscoveryClientForConfigAndClient(s.mgr.GetConfig(), s.mgr.GetHTTPClient())
	if err != nil {
		return false, fmt.Errorf("make the discovery client: %w", err)
	}
	return judge.RelaxedServiceNames(discover)
}

// watchAndProbe starts every informer that a verdict needs and lets the probes tell
// whether requests can be judged.
func (s *server) watchAndProbe(ctx context.Context, rules *engine.Engine, trust *certs.Trust) error {
	watched := []client.Object{namespaceMetadata(), &nodev1.RuntimeClass{}, &corev1.Node{}}
	if err := s.mgr.GetFieldIndexer().IndexField(ctx, &corev1.Node{}, takesPods, whetherItTakesPods); err != nil {
		return fmt.Errorf("index nodes by whether they take Pods: %w", err)
	}
	for _, kind := range hashedKinds {
		if err := s.mgr.GetFieldIndexer().IndexField(ctx, hashedKind(kind), nameHash, hashOf); err != nil {
			return fmt.Errorf("index %s by the hash of their names: %w", kind, err)
		}
		watched = append(watched, hashedKind(kind))
	}
	for _, object := range watched {
		if _, err := s.mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	ready := map[string]healthz.Checker{
		"policies":    policiesLoaded(rules),
		"caches":      s.cachesSynced,
		"certificate": trust.Ready,
		"server":      s.serving.StartedChecker(),
	}
	s.serving.judges = func() bool { return rules.Ready() && s.synced.Load() }
	for name, check := range ready {
		if err := s.mgr.AddReadyzCheck(name, outspoken(name, check)); err != nil {
			return fmt.Errorf("add readiness check %s: %w", name, err)
		}
	}
	if err := s.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	return nil
}

func policiesLoaded(rules *engine.Engine) healthz.Checker {
	return func(*http.Request) error {
		if rules.Ready() {
			return nil
		}
		return errNotReady
	}
}

func (s *server) cachesSynced(*http.Request) error {
	if s.synced.Load() {
		return nil
	}
	return errors.New("the caches are not filled yet")
}

// outspoken logs why a check fails, once for each reason: the probe itself withholds
// it.
func outspoken(name string, check healthz.Checker) healthz.Checker {
	var last atomic.Pointer[string]
	log := ctrl.Log.WithName("readiness").WithValues("check", name)
	return func(request *http.Request) error {
		err := check(request)
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		if before := last.Swap(&reason); err != nil && (before == nil || *before != reason) {
			log.Info("not ready", "reason", reason)
		}
		return err
	}
}
