// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// versionVariable is what both programs of the platform print and log as their
// version.
const versionVariable = "k8s.io/component-base/version.gitVersion"

// program is one main package to compile for Linux.
type program struct {
	// dir is a folder of the module, pkg the package relative to it.
	dir, pkg string
	// arch is amd64 or arm64.
	arch string
	// version is stamped into versionVariable; empty stamps nothing.
	version string
}

// compile writes the program's static binary to output.
func (p program) compile(ctx context.Context, output string) error {
	ldflags := "-s -w"
	if p.version != "" {
		ldflags += " -X " + versionVariable + "=" + p.version
	}
	//nolint:gosec // The arguments are this repository's own.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", output, p.pkg)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(),
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("compile %s: %w; install Go and put it in PATH", p.pkg, err)
	case err != nil:
		return fmt.Errorf("compile %s in %s for linux/%s: %w: %s",
			p.pkg, p.dir, p.arch, err, strings.TrimSpace(problems.String()))
	}
	return nil
}
