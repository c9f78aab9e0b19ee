// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"flag"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim"
)

// ClaimOptions are what the command line says of claims.
type ClaimOptions struct {
	// ConcurrentWorkers is how many claims are worked on at once.
	ConcurrentWorkers int
	// ColdStartAfter is how long a claim waits for its pool before it starts cold.
	ColdStartAfter time.Duration
	// BindTimeout is how long a claim may be without a Sandbox; 0 for no bound.
	BindTimeout time.Duration
	// DisableEvents publishes no Events that come with every claim.
	DisableEvents bool
	// DisableTimes writes no annotations that tell times.
	DisableTimes bool
}

// Bind declares the flags.
func (o *ClaimOptions) Bind(flags *flag.FlagSet) {
	flags.IntVar(&o.ConcurrentWorkers, "sandbox-claim-concurrent-workers", 50, "Claims worked on at once.")
	flags.DurationVar(&o.ColdStartAfter, "claim-cold-start-after", 2*time.Second,
		"How long a claim waits for its pool to refill before a new Sandbox is started for it; 0 waits for nothing.")
	flags.DurationVar(&o.BindTimeout, "claim-bind-timeout", 0,
		"How long a claim may be without a Sandbox before it expires, unless its annotation platform.agents.x-k8s.io/bind-timeout says otherwise; "+
			"0 for ever.")
	flags.BoolVar(&o.DisableEvents, "disable-claim-events", false,
		"Publish no Events that come with every claim; warnings are published in any case.")
	flags.BoolVar(&o.DisableTimes, "disable-claim-observability-annotations", false,
		"Write no annotations on claims that tell when they were first seen and ready.")
}

// validate refuses what cannot be used.
func (o *ClaimOptions) validate(refuse func(name string, value any, remedy string)) {
	if o.ConcurrentWorkers < 1 {
		refuse("sandbox-claim-concurrent-workers", o.ConcurrentWorkers, "give at least 1")
	}
	if o.ColdStartAfter < 0 {
		refuse("claim-cold-start-after", o.ColdStartAfter, "give a duration such as 2s, or 0 to wait for nothing")
	}
	if o.BindTimeout < 0 {
		refuse("claim-bind-timeout", o.BindTimeout, "give a duration such as 10m, or 0 for no bound")
	}
}

// setUpClaims adds the controller of claims to the manager.
func setUpClaims(ctx context.Context, mgr ctrl.Manager, options ClaimOptions, common shared) error {
	reconciler := claim.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(controllerName), clock.RealClock{},
		claim.Settings{
			Current:           common.network.Platform,
			Verdicts:          common.verdicts,
			ConcurrentWorkers: options.ConcurrentWorkers,
			ColdStartAfter:    options.ColdStartAfter,
			BindTimeout:       options.BindTimeout,
			NoEvents:          options.DisableEvents,
			NoTimes:           options.DisableTimes,
			Tracer:            common.tracer,
		})
	return reconciler.SetupWithManager(ctx, mgr)
}
