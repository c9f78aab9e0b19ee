// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/build"
)

// program prints where one program of the cluster lies.
func program(ctx context.Context, out io.Writer, name string) error {
	builder, err := build.NewBuilder(ctx)
	if err != nil {
		return err
	}
	path, err := builder.Program(ctx, build.Components(), name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, path)
	return err
}
