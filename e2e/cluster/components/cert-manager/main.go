// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cert-manager is what the test cluster needs of cert-manager, in one process
// and made of its own packages: the controllers of certificates, their requests and
// the issuers selfSigned and ca, and cainjector for webhook configurations. Its
// commands are modules of their own that cannot be required. Left out: ACME, Vault,
// Venafi, ingresses, and the admission webhook for its kinds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	// The packages have put flags of their own on the command line's set.
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig to work with")
	namespace := flags.String("namespace", "", "the only namespace whose certificates are looked after; empty for all")
	klog.InitFlags(flags)
	_ = flags.Parse(os.Args[1:]) // it exits by itself
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *namespace)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace string) error {
	if kubeconfig == "" {
		return errors.New("-kubeconfig is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runControllers(ctx, kubeconfig, namespace) })
	group.Go(func() error { return runInjector(ctx, rest.AddUserAgent(config, "cainjector"), namespace) })
	return group.Wait()
}

// backoff is how long after a failed request the next one is made: cert-manager's own
// default of an hour is longer than a test.
const backoff = time.Second
