// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/version"
)

// versionLine says what this binary was built from, as the linker was told.
func versionLine() string {
	info := version.Get()
	return fmt.Sprintf("agent-sandbox-controller %s (%s)", info.GitVersion, info.GoVersion)
}

// publishBuild publishes a gauge that is always 1 and whose labels say what this binary
// was built from.
func publishBuild(to prometheus.Registerer) error {
	info := version.Get()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agent_sandbox_build_info", Help: "What the controller was built from.",
		ConstLabels: prometheus.Labels{
			"git_version": info.GitVersion, "git_commit": info.GitCommit, "build_date": info.BuildDate,
			"go_version": info.GoVersion, "compiler": info.Compiler, "platform": info.Platform,
		},
	})
	build.Set(1)
	if err := to.Register(build); err != nil {
		return fmt.Errorf("publish what the controller was built from: %w", err)
	}
	return nil
}
