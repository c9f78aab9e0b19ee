// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
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
	return clusterProgram(ctx, args, std, helper{
		name: "probe", ref: "agent-sandbox-platform/probe:test", make: build.Builder.Probe,
	})
}

func pauseCommand(ctx context.Context, args []string, std streams) error {
	return clusterProgram(ctx, args, std, helper{name: "pause", make: build.Builder.Pause})
}

// helper is a program of the test cluster with the default name of its image.
type helper struct {
	name, ref string
	make      func(build.Builder, context.Context, string) (v1.Image, error)
}

func clusterProgram(ctx context.Context, args []string, std streams, what helper) error {
	flags := flag.NewFlagSet(what.name, flag.ContinueOnError)
	dir := flags.String("source", ".", "a folder inside the repository")
	ref := flags.String("ref", what.ref, "name of the image, NAME:TAG")
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
	say(std, "Compiling %s for linux/%s.", what.name, *arch)
	img, err := what.make(builder, ctx, *arch)
	if err != nil {
		return fmt.Errorf("make the %s image: %w", what.name, err)
	}
	return writeArchive(*out, *ref, img, std)
}
