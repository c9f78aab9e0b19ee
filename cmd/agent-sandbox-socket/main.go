// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent-sandbox-socket keeps the webhook's listening socket open while the webhook is
// away: one that was killed then loses what it was answering and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-sandbox-platform/agent-sandbox/webhook/socket"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent-sandbox-socket:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("agent-sandbox-socket", flag.ExitOnError)
	path := flags.String("path", "", "Path of the Unix socket over which the webhook leaves its socket.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" || flags.NArg() > 0 {
		return fmt.Errorf("the arguments are %q: write only --path, with the path that the webhook has as --socket-keeper", args)
	}
	return socket.Keep(ctx, *path)
}
