// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package surroundings

import (
	"context"
	"fmt"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list;watch

// serviceRangeVersions are the versions in which an apiserver may serve the ranges of its
// Services, the best first.
func serviceRangeVersions() []string { return []string{"v1", "v1beta1"} }

// serviceRange is the kind of the ranges of Services, in a version.
func serviceRange(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: networkingv1.GroupName, Version: version, Kind: "ServiceCIDR"}
}

// findServiceRanges finds out in which version the apiserver serves the ranges of its
// Services; empty for one that is too old to.
func findServiceRanges(ctx context.Context, live client.Reader) (string, error) {
	for _, version := range serviceRangeVersions() {
		_, err := listServiceRanges(ctx, live, version)
		if err == nil {
			return version, nil
		}
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	return "", nil
}

// listServiceRanges are the ranges out of which Services get their addresses.
func listServiceRanges(ctx context.Context, reader client.Reader, version string) ([]netip.Prefix, error) {
	if version == "" {
		return nil, nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(serviceRange(version))
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the ranges of Services: %w", err)
	}
	var ranges []netip.Prefix
	for i := range list.Items {
		texts, _, err := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "cidrs")
		if err != nil {
			return nil, fmt.Errorf("read the range of Services %q: %w", list.Items[i].GetName(), err)
		}
		for _, text := range texts {
			if prefix, err := netip.ParsePrefix(text); err == nil { // the apiserver has checked it
				ranges = append(ranges, plain(prefix))
			}
		}
	}
	return ranges, nil
}
