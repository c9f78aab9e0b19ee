// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/preflight"
)

// commands are what the program does besides serving admission, each with the arguments
// that follow its name.
func commands() map[string]func(ctx context.Context, args []string, out io.Writer) error {
	return map[string]func(ctx context.Context, args []string, out io.Writer) error{
		commandCleanup:         cleanup,
		preflight.CommandRun:   runPreflight,
		preflight.CommandProbe: func(ctx context.Context, args []string, _ io.Writer) error { return preflight.Probe(ctx, args) },
		preflight.CommandServe: servePreflight,
	}
}

func servePreflight(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s wants one address, such as :8080", preflight.CommandServe)
	}
	return preflight.Serve(ctx, args[0], out)
}

// runPreflight tries the cluster, as the chart's test does.
func runPreflight(ctx context.Context, args []string, out io.Writer) error {
	var o preflight.Options
	var path, secrets string
	flags := flag.NewFlagSet("agent-sandbox-webhook "+preflight.CommandRun, flag.ContinueOnError)
	flags.StringVar(&o.Namespace, "namespace", "", "namespace in which the probes run")
	flags.StringVar(&o.Image, "image", "", "image of the probes, which is that of the webhook")
	flags.StringVar(&secrets, "pull-secrets", "", "names of Secrets to pull the image with, separated by commas")
	flags.StringVar(&o.Certificate, "certificate", "", "name of the webhook's Certificate, where cert-manager keeps it")
	flags.StringVar(&path, "config", "/etc/agent-sandbox/platform.yaml", "file with the platform configuration")
	if stop, err := parse(flags, args, out); stop {
		return err
	}
	if o.Namespace == "" || o.Image == "" {
		return errors.New("--namespace and --image must be set: they say where the probes run, and what")
	}
	if secrets != "" {
		o.PullSecrets = strings.Split(secrets, ",")
	}
	platform, err := config.Load(path)
	if err != nil {
		return err
	}
	restConfig, err := ctrlconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), certmanagerv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register kinds: %w", err)
	}
	c, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return preflight.Run(ctx, c, o, platform, out)
}
