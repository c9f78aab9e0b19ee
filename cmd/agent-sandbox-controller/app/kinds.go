// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

const (
	// kindsInterval and kindsPatience let a CustomResourceDefinition that was applied
	// together with this process become served.
	kindsInterval = time.Second
	kindsPatience = 15 * time.Second
)

// awaitKinds waits until the apiserver serves the kinds that the controllers watch.
func awaitKinds(ctx context.Context, connection *rest.Config, extensions bool) error {
	client, err := discovery.NewDiscoveryClientForConfig(connection)
	if err != nil {
		return fmt.Errorf("connect to the apiserver: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, kindsInterval, kindsPatience, true, func(context.Context) (bool, error) {
		last = serves(client, agentsv1beta1.GroupVersion, "sandboxes")
		for _, resource := range []string{"sandboxtemplates", "sandboxwarmpools", "sandboxclaims"} {
			if extensions && last == nil {
				last = serves(client, extensionsv1beta1.GroupVersion, resource)
			}
		}
		return last == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}

func serves(client discovery.ServerResourcesInterface, gv schema.GroupVersion, resource string) error {
	version := gv.String()
	list, err := client.ServerResourcesForGroupVersion(version)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask the apiserver for its kinds: %w", err)
	}
	if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
		return nil
	}
	return fmt.Errorf("the cluster has no CustomResourceDefinition %s.%s that serves %s: "+
		"install the chart with crds.install=true, or apply its CRDs, and start again", resource, gv.Group, version)
}
