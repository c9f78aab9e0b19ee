// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/audit"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// setUpExtensions adds the controllers of the extensions to the manager, with the audit
// that judges what they hand out; that is nil when there are no policies.
func setUpExtensions(ctx context.Context, mgr ctrl.Manager, options Options, platform *config.Platform, network *surroundings.Watcher) (*audit.Auditor, error) {
	auditor, err := setUpAudit(ctx, mgr, options.Audit, platform)
	if err != nil {
		return nil, err
	}
	var verdicts verdict.Judge
	if auditor != nil {
		verdicts = auditor.Members()
	}
	if err := setUpTemplates(ctx, mgr, options.Pools, network); err != nil {
		return nil, err
	}
	if err := setUpPools(ctx, mgr, options.Pools, platform, verdicts); err != nil {
		return nil, err
	}
	return auditor, setUpClaims(ctx, mgr, options.Claims, platform, verdicts)
}
