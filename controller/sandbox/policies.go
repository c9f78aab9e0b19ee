// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"maps"

	"golang.org/x/sync/singleflight"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policyKeeper keeps the NetworkPolicies that all Sandboxes of a namespace share.
type policyKeeper struct {
	client client.Client
	live   client.Reader
	// flights lets one Sandbox write what others need at the same moment.
	flights singleflight.Group
}

// ensure makes the policy, or makes it again what it has to be. When it is, that
// costs a read of the cache.
func (k *policyKeeper) ensure(ctx context.Context, want *networkingv1.NetworkPolicy) error {
	_, err, _ := k.flights.Do(client.ObjectKeyFromObject(want).String(), func() (any, error) {
		return nil, k.write(ctx, want)
	})
	return err
}

func (k *policyKeeper) write(ctx context.Context, want *networkingv1.NetworkPolicy) error {
	got, err := lookUp(ctx, k.client, want.Namespace, want.Name, &networkingv1.NetworkPolicy{})
	if err != nil {
		return err
	}
	err = k.createOrMend(ctx, got, want)
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	// The cache is behind, or the policy lost the label by which the cache knows it.
	got, err = lookUp(ctx, k.live, want.Namespace, want.Name, &networkingv1.NetworkPolicy{})
	if err != nil {
		return err
	}
	return k.createOrMend(ctx, got, want)
}

func (k *policyKeeper) createOrMend(ctx context.Context, got, want *networkingv1.NetworkPolicy) error {
	if got == nil {
		return k.client.Create(ctx, want.DeepCopy(), fieldOwner)
	}
	if !mendPolicy(got, want) {
		return nil
	}
	return k.client.Update(ctx, got, fieldOwner)
}

// mendPolicy makes a policy what it has to be and says whether that changed it. An
// owner goes, since the policy would go with him.
func mendPolicy(got, want *networkingv1.NetworkPolicy) bool {
	before := got.DeepCopy()
	if got.Labels == nil {
		got.Labels = map[string]string{}
	}
	maps.Copy(got.Labels, want.Labels)
	got.OwnerReferences = nil
	got.Spec = *want.Spec.DeepCopy()
	return !apiequality.Semantic.DeepEqual(before, got)
}
