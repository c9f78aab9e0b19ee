// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host changes the machine for the cluster, and changes it back: kernel
// settings, packet filter rules, network links, mounts and cgroups.
package host

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// command runs a program and returns what it printed; the error holds what it
// complained about.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // All names are in this package.
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// all runs commands in order until one fails.
func all(ctx context.Context, commands ...string) error {
	for _, line := range commands {
		fields := strings.Fields(line)
		if _, err := command(ctx, fields[0], fields[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// try runs commands of which each may fail, as undoing what was never done does.
func try(ctx context.Context, commands ...string) {
	for _, line := range commands {
		fields := strings.Fields(line)
		_, _ = command(ctx, fields[0], fields[1:]...)
	}
}
