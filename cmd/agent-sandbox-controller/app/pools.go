// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"flag"
	"math"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/warmpool"
)

// PoolOptions are what the command line says of templates and pools.
type PoolOptions struct {
	// TemplateWorkers and PoolWorkers are how many templates and pools are worked on at
	// once.
	TemplateWorkers, PoolWorkers int
	// Refill bounds how fast pools make members.
	Refill warmpool.Refill
	// Yield bounds how long refills let claims go first.
	Yield warmpool.Yield
	// ReadinessGrace is how long a member may be not Ready.
	ReadinessGrace time.Duration
	// UnschedulableRecheck is how often members that wait for a node are looked at.
	UnschedulableRecheck time.Duration
	// SafeToEvict lets the cluster autoscaler evict members.
	SafeToEvict bool
}

// Bind declares the flags.
func (o *PoolOptions) Bind(flags *flag.FlagSet) {
	flags.IntVar(&o.TemplateWorkers, "sandbox-template-concurrent-workers", 1, "Templates worked on at once.")
	flags.IntVar(&o.PoolWorkers, "sandbox-warm-pool-concurrent-workers", 1, "Pools worked on at once.")
	flags.IntVar(&o.Refill.MaxBatch, "sandbox-warm-pool-max-batch-size", 300, "Sandboxes that a pool makes in one pass at most, and deletes.")
	flags.DurationVar(&o.Refill.Delay, "sandbox-warm-pool-replenish-delay", 0,
		"How long a pool that was full waits, from the first Sandbox that is missing, before it makes new ones.")
	flags.Float64Var(&o.Refill.PerSecond, "sandbox-warm-pool-max-refill-rate", 0, "Sandboxes a second that a pool makes at most; 0 for no bound.")
	flags.DurationVar(&o.Yield.ToBindings, "sandbox-warm-pool-yield-to-bindings", time.Second,
		"How long a pool that misses Sandboxes makes new ones only for claims that wait for one, while others are being handed out; 0 refills at once.")
	flags.DurationVar(&o.Yield.ToColdStarts, "sandbox-warm-pool-yield-to-cold-starts", 10*time.Second,
		"The same while Sandboxes of claims are starting cold; 0 refills at once.")
	flags.DurationVar(&o.ReadinessGrace, "sandbox-warm-pool-readiness-grace-period", 5*time.Minute,
		"How long a Sandbox of a pool may be not Ready before it is replaced.")
	flags.DurationVar(&o.UnschedulableRecheck, "sandbox-warm-pool-unschedulable-recheck-interval", time.Minute,
		"How often a pool looks at Sandboxes that wait for a node.")
	flags.BoolVar(&o.SafeToEvict, "enable-warm-pool-eviction", true, "Let the cluster autoscaler evict Sandboxes of pools.")
}

// validate refuses what cannot be used.
func (o *PoolOptions) validate(refuse func(name string, value any, remedy string)) {
	for _, given := range []struct {
		flag  string
		value int
	}{
		{"sandbox-template-concurrent-workers", o.TemplateWorkers},
		{"sandbox-warm-pool-concurrent-workers", o.PoolWorkers},
		{"sandbox-warm-pool-max-batch-size", o.Refill.MaxBatch},
	} {
		if given.value < 1 {
			refuse(given.flag, given.value, "give at least 1")
		}
	}
	for _, given := range []struct {
		flag  string
		value time.Duration
		least time.Duration
		such  string
	}{
		{"sandbox-warm-pool-readiness-grace-period", o.ReadinessGrace, 1, "give a positive duration such as 5m"},
		{"sandbox-warm-pool-unschedulable-recheck-interval", o.UnschedulableRecheck, 1, "give a positive duration such as 5m"},
		{"sandbox-warm-pool-replenish-delay", o.Refill.Delay, 0, "give a duration such as 10s, or 0 for no delay"},
		{"sandbox-warm-pool-yield-to-bindings", o.Yield.ToBindings, 0, "give a duration such as 10s, or 0 for no delay"},
		{"sandbox-warm-pool-yield-to-cold-starts", o.Yield.ToColdStarts, 0, "give a duration such as 10s, or 0 for no delay"},
	} {
		if given.value < given.least {
			refuse(given.flag, given.value, given.such)
		}
	}
	if rate := o.Refill.PerSecond; math.IsNaN(rate) || math.IsInf(rate, 0) || rate < 0 {
		refuse("sandbox-warm-pool-max-refill-rate", rate, "give a number of Sandboxes a second, or 0 for no bound")
	}
}

// setUpTemplates adds the controller of templates to the manager.
func setUpTemplates(ctx context.Context, mgr ctrl.Manager, options PoolOptions, common shared) error {
	reconciler := template.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(controllerName), clock.RealClock{},
		template.Settings{
			Current: common.network.Platform, Changed: common.network.Follow(), EveryPolicy: common.policies,
			ConcurrentWorkers: options.TemplateWorkers, Tracer: common.tracer,
		})
	return reconciler.SetupWithManager(ctx, mgr)
}

// setUpPools adds the controller of pools to the manager.
func setUpPools(ctx context.Context, mgr ctrl.Manager, options PoolOptions, common shared) error {
	reconciler := warmpool.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(controllerName), clock.RealClock{},
		warmpool.Settings{
			Current:              common.network.Platform,
			Verdicts:             common.verdicts,
			ConcurrentWorkers:    options.PoolWorkers,
			Refill:               options.Refill,
			Yield:                options.Yield,
			ReadinessGrace:       options.ReadinessGrace,
			UnschedulableRecheck: options.UnschedulableRecheck,
			SafeToEvict:          options.SafeToEvict,
			Metrics:              metrics.Registry,
		})
	return reconciler.SetupWithManager(ctx, mgr)
}
