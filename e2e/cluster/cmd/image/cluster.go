// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/debian"
)

func debianCommand(ctx context.Context, args []string, std streams) error {
	flags := flag.NewFlagSet("debian", flag.ContinueOnError)
	ref := flags.String("ref", "", "name of the image, for example python:3.12-slim")
	out := flags.String("out", "", "file of the archive")
	if err := parse(flags, args, std); err != nil {
		return err
	}
	if err := require(flags, "ref", "out"); err != nil {
		return err
	}
	img, err := debian.Builder{Cache: cacheFolder("debian"), Progress: std.progress}.Image(ctx)
	if err != nil {
		return err
	}
	return writeArchive(*out, *ref, img, std)
}

func probeCommand(ctx context.Context, args []string, std streams) error {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	dir := flags.String("source", ".", "a folder inside the repository")
	ref := flags.String("ref", "agent-sandbox-platform/probe:test", "name of the image, NAME:TAG")
	out := flags.String("out", "", "file of the archive")
	arch := flags.String("arch", runtime.GOARCH, "architecture: amd64 or arm64")
	if err := parse(flags, args, std); err != nil {
		return err
	}
	if err := require(flags, "ref", "out"); err != nil {
		return err
	}
	builder, err := newBuilder(*dir)
	if err != nil {
		return err
	}
	say(std, "Compiling probe for linux/%s.", *arch)
	img, err := builder.Probe(ctx, *arch)
	if err != nil {
		return fmt.Errorf("make the probe image: %w", err)
	}
	return writeArchive(*out, *ref, img, std)
}
