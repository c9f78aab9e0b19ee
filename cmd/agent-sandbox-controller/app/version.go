// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime/debug"
)

// versionLine says what this binary was built from, as the Go linker recorded it.
func versionLine() string {
	info, recorded := debug.ReadBuildInfo()
	if !recorded {
		return "agent-sandbox-controller (unknown version)"
	}
	return fmt.Sprintf("agent-sandbox-controller %s (%s)", info.Main.Version, info.GoVersion)
}
