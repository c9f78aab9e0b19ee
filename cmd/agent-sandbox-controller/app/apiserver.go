// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list

// closeAPIServer adds the apiserver's own addresses to the ranges of the cluster, so
// that the internet of a Sandbox never covers them: the address of the Service
// kubernetes is translated to them before a NetworkPolicy is applied, and they may be
// public. They are read when the controller starts.
func closeAPIServer(ctx context.Context, reader client.Reader, platform *config.Platform) error {
	var slicesOfService discoveryv1.EndpointSliceList
	err := reader.List(ctx, &slicesOfService, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"})
	if err != nil {
		return fmt.Errorf("find the apiserver's addresses: %w", err)
	}
	platform.Cluster.CIDRs = withAddresses(platform.Cluster.CIDRs, slicesOfService.Items)
	return nil
}

// withAddresses adds every address of the slices as a range of its own.
func withAddresses(cidrs []string, endpoints []discoveryv1.EndpointSlice) []string {
	all := slices.Clone(cidrs)
	for i := range endpoints {
		for _, endpoint := range endpoints[i].Endpoints {
			for _, text := range endpoint.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue // a slice of names has no addresses to close
				}
				if cidr := netip.PrefixFrom(address, address.BitLen()).String(); !slices.Contains(all, cidr) {
					all = append(all, cidr)
				}
			}
		}
	}
	return all
}
