// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command storage is the dynamic volume provisioner of the test cluster: every
// claim becomes a folder on the node, writable by any user, removed when the
// claim is released.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	root := flag.String("root", "", "folder on the node that holds the volumes")
	name := flag.String("provisioner", "", "provisioner name of the storage classes to serve")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *name); err != nil {
		fmt.Fprintln(os.Stderr, "storage provisioner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, name string) error {
	if root == "" || name == "" {
		return errors.New("both -root and -provisioner are required")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("in-cluster configuration: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	// One replica on one node: leader election would only cost writes.
	controller.NewProvisionController(ctx, client, name, provisioner{root: root},
		controller.LeaderElection(false)).Run(ctx)
	return nil
}
