// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	crca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	crselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // Registers the issuer.
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // Registers the issuer.
	"golang.org/x/sync/errgroup"
)

// workers of each controller.
const workers = 2

// names are the controllers that run; their packages register them.
func names() []string {
	return []string{
		issuers.ControllerName, approver.ControllerName, crca.CRControllerName, crselfsigned.CRControllerName,
		issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName,
		requestmanager.ControllerName, revisionmanager.ControllerName, trigger.ControllerName,
	}
}

// runControllers runs cert-manager's controllers until the context ends.
func runControllers(ctx context.Context, kubeconfig, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, Namespace: namespace,
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: backoff, CertificateRequestMaximumBackoffDuration: backoff,
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the controllers: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names() {
		made, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("make controller %s: %w", name, err)
		}
		group.Go(func() error { return made.Run(workers, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("prepare the informers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return group.Wait()
}
