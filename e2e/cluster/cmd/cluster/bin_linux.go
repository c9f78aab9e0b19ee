// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/build"
)

// program prints where one program lies, of the cluster or of those that stand in for
// parts of it.
func program(ctx context.Context, out io.Writer, name string) error {
	builder, err := build.NewBuilder(ctx)
	if err != nil {
		return err
	}
	path, err := builder.Program(ctx, slices.Concat(build.Components(), build.Extras()), name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, path)
	return err
}
