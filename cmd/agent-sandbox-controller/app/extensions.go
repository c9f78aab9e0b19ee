// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/surroundings"
)

// setUpExtensions adds the controllers of the extensions to the manager.
func setUpExtensions(ctx context.Context, mgr ctrl.Manager, options Options, platform *config.Platform, network *surroundings.Watcher) error {
	if err := setUpTemplates(ctx, mgr, options.Pools, network); err != nil {
		return err
	}
	if err := setUpPools(ctx, mgr, options.Pools, platform); err != nil {
		return err
	}
	return setUpClaims(ctx, mgr, options.Claims, platform)
}
