// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// commandCleanup is the subcommand that deletes the webhook configurations.
const commandCleanup = "cleanup"

// Main runs the command with its arguments: it serves, or cleans up.
func Main(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if run, is := commands()[args[0]]; is {
			return run(ctx, args[1:], out)
		}
	}
	var o Options
	var logging zap.Options
	flags := flag.NewFlagSet("agent-sandbox-webhook", flag.ContinueOnError)
	o.Bind(flags)
	logging.BindFlags(flags)
	if stop, err := parse(flags, args, out); stop {
		return err
	}
	if o.Version {
		_, err := fmt.Fprintln(out, version.Get().GitVersion)
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	restConfig, err := ctrlconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	return Run(ctx, restConfig, o)
}

func cleanup(ctx context.Context, args []string, out io.Writer) error {
	var o Options
	flags := flag.NewFlagSet("agent-sandbox-webhook "+commandCleanup, flag.ContinueOnError)
	o.bindNames(flags)
	if stop, err := parse(flags, args, out); stop {
		return err
	}
	restConfig, err := ctrlconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	c, err := client.New(restConfig, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return Cleanup(ctx, c, o, out)
}

// parse reads flags. It says to stop on an error, and without one when help was
// asked for. Errors are one line: the usage is for those who ask.
func parse(flags *flag.FlagSet, args []string, out io.Writer) (stop bool, err error) {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return true, nil
	} else if err != nil {
		return true, fmt.Errorf("%w: see --help", err)
	}
	if flags.NArg() > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(commands())), ", ")
		return true, fmt.Errorf("unexpected argument %q: write flags only, or one of %s before them", flags.Arg(0), names)
	}
	return false, nil
}
