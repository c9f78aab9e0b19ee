// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app wires the controllers into a process: flags, configuration, manager,
// health. Whatever keeps it from starting ends in one sentence that says what to do.
//
// # Decisions
//
// 2026-11-30: The Lease lasts 5 s, so that a leader that is killed is followed within 7 s.
// A leader tries for 3 s to renew it and then ends, to be started again. Another one takes
// the lead as early as 4 s after the last renewal, since it tells renewals apart by whole
// seconds and begins to count with the first of a second: 4 s of trying were two leaders at
// once.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
)

// Exit codes of the command.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Main runs the command until the context ends and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var options Options
	flags := flag.NewFlagSet("agent-sandbox-controller", flag.ContinueOnError)
	flags.SetOutput(stderr)
	clientconfig.RegisterFlags(flags)
	options.Bind(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage // the flag package has said why
	}
	if options.Version {
		say(stdout, versionLine())
		return exitOK
	}
	if err := options.Validate(); err != nil {
		say(stderr, err)
		return exitUsage
	}
	if err := run(ctx, options, stderr); err != nil {
		say(stderr, "agent-sandbox-controller:", err)
		return exitError
	}
	return exitOK
}

// say prints a line. When even that fails, nobody is left to tell.
func say(to io.Writer, line ...any) {
	_, _ = fmt.Fprintln(to, line...)
}

func run(ctx context.Context, options Options, stderr io.Writer) error {
	logger := zap.New(zap.UseFlagOptions(&options.Zap), zap.WriteTo(stderr), func(o *zap.Options) {
		if o.StacktraceLevel == nil {
			o.StacktraceLevel = zapcore.DPanicLevel // an error of a user is no fault of the code
		}
	})
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	platform, err := config.Load(options.Config)
	if err != nil {
		return err
	}
	connection, err := connect(options)
	if err != nil {
		return err
	}
	if err := awaitKinds(ctx, connection, options.Extensions); err != nil {
		return err
	}
	tracer, end, err := trace(ctx, options.Tracing)
	if err != nil {
		return err
	}
	defer func() {
		if lost := end(); lost != nil {
			logger.Error(lost, "Some traces were not sent") // no reason to end badly
		}
	}()
	mgr, err := newManager(ctx, connection, options, platform, tracer)
	if err != nil {
		return err
	}
	logger.Info("Starting", "version", versionLine())
	return mgr.Start(ctx)
}

// lastSpans bounds how long the last spans may take to be sent.
const lastSpans = 5 * time.Second

// trace makes the tracer, and what sends its last spans.
func trace(ctx context.Context, enabled bool) (tracer tracing.Tracer, end func() error, err error) {
	if !enabled {
		return tracing.Tracer{}, func() error { return nil }, nil
	}
	tracer, shutdown, err := tracing.Export(ctx, "agent-sandbox-controller")
	return tracer, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		return shutdown(ctx)
	}, err
}

func connect(options Options) (*rest.Config, error) {
	connection, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the apiserver: %w: run in a Pod, or set --kubeconfig or KUBECONFIG", err)
	}
	connection.QPS, connection.Burst = float32(options.KubeAPIQPS), options.KubeAPIBurst
	connection.UserAgent = "agent-sandbox-controller"
	return connection, options.Connections.apply(connection)
}
