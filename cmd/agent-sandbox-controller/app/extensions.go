// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/audit"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// shared is what the controllers have in common besides the manager.
type shared struct {
	network  *surroundings.Watcher
	policies cache.Cache
	tracer   tracing.Tracer
	// verdicts judge what is handed out; nil when there are no policies. Set by
	// setUpExtensions.
	verdicts verdict.Judge
}

// setUpExtensions adds the controllers of the extensions to the manager, with the audit
// that judges what they hand out; that is nil when there are no policies.
func setUpExtensions(ctx context.Context, mgr ctrl.Manager, options Options, common shared) (*audit.Auditor, error) {
	if err := relations.Declare(ctx, mgr.GetFieldIndexer(), relations.OfExtensions()...); err != nil {
		return nil, err
	}
	auditor, err := setUpAudit(ctx, mgr, options.Audit, common.network)
	if err != nil {
		return nil, err
	}
	if auditor != nil {
		common.verdicts = auditor.Members()
	}
	if err := setUpTemplates(ctx, mgr, options.Pools, common); err != nil {
		return nil, err
	}
	options.Pools.Yield.ColdStartAfter = options.Claims.ColdStartAfter
	if err := setUpPools(ctx, mgr, options.Pools, common); err != nil {
		return nil, err
	}
	return auditor, setUpClaims(ctx, mgr, options.Claims, common)
}
