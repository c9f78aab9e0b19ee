// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image makes the container images of the platform and of its test
// cluster without a container engine. `image help` lists its commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `image makes container images without a container engine.

  image build  [-version V] [-out DIR] [-arch A] [-prefix P]   the platform's images, as archives
  image push   -registry HOST/PREFIX [-version V] [-arch amd64,arm64]   the same, to a registry
  image debian -ref NAME:TAG -out FILE                a shell and Python, from Debian packages
  image probe  -out FILE [-ref NAME:TAG] [-arch A]    a network probe

Each line of output is NAME:TAG, DIGEST and, for archives, FILE. Load an archive
with: ctr -n k8s.io images import FILE. "image COMMAND -help" explains the flags.
SOURCE_DATE_EPOCH, if set, dates the images; the same sources then still have the
same digest. Exit codes: 0 done, 1 failed, 2 wrong usage.
`

const (
	exitFailed = 1
	exitUsage  = 2
)

// errUsage marks errors of the command line.
var errUsage = errors.New("wrong usage")

// streams are where a command writes: results, and progress.
type streams struct {
	out, progress io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{out: os.Stdout, progress: os.Stderr})
	stop()
	os.Exit(code)
}

// run carries out one command and returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	err := dispatch(ctx, args, std)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(std.progress, "image: interrupted")
		return exitFailed
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(std.progress, "image: %v\n", err)
		return exitUsage
	default:
		_, _ = fmt.Fprintf(std.progress, "image: %v\n", err)
		return exitFailed
	}
}

func dispatch(ctx context.Context, args []string, std streams) error {
	if len(args) == 0 {
		return usageError("no command given; use one of build, push, debian, probe, or help")
	}
	commands := map[string]func(context.Context, []string, streams) error{
		"build": buildCommand, "push": pushCommand, "debian": debianCommand,
		"probe": probeCommand,
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		_, err := io.WriteString(std.out, usage)
		return err
	}
	command, found := commands[args[0]]
	if !found {
		return usageError("unknown command %q; use one of build, push, debian, probe, or help", args[0])
	}
	return command(ctx, args[1:], std)
}

func usageError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, args...)...)
}

// parse reads the flags of one command, which takes no other arguments.
func parse(flags *flag.FlagSet, args []string, std streams) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(std.progress)
		flags.Usage()
		return err
	case err != nil:
		return usageError("%s: %v; see image %s -help", flags.Name(), err, flags.Name())
	case flags.NArg() > 0:
		return usageError("%s takes no argument %q; see image %s -help", flags.Name(), flags.Arg(0), flags.Name())
	}
	return nil
}

// require returns a usage error for the first flag of names that is empty.
func require(flags *flag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := flags.Lookup(name); f.Value.String() == "" {
			return usageError("%s needs -%s (%s)", flags.Name(), name, f.Usage)
		}
	}
	return nil
}
