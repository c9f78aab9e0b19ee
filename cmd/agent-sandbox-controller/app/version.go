// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"k8s.io/component-base/version"
)

// versionLine says what this binary was built from, as the linker was told.
func versionLine() string {
	info := version.Get()
	return fmt.Sprintf("agent-sandbox-controller %s (%s)", info.GitVersion, info.GoVersion)
}
