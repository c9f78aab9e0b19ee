// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"fmt"
	"maps"

	"golang.org/x/sync/singleflight"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// Keeper writes NetworkPolicies.
type Keeper struct {
	client client.Client
	live   client.Reader
	owner  client.FieldOwner
	// flights lets one pass write what others need at the same moment.
	flights singleflight.Group
}

// New makes a Keeper. The cached client sees its own writes; live reads from the
// apiserver; owner is the name under which the apiserver records the writes.
func New(cached client.Client, live client.Reader, owner client.FieldOwner) *Keeper {
	return &Keeper{client: cached, live: live, owner: owner}
}

// Shared makes a policy that serves a whole namespace, or makes it again what it has
// to be, whoever holds its name. When it is, that costs a read of the cache.
func (k *Keeper) Shared(ctx context.Context, want *networkingv1.NetworkPolicy) error {
	_, err := k.ensure(ctx, want, anyone)
	return err
}

// holder says why the policy that exists may not be made what ours has to be.
type holder func(got *networkingv1.NetworkPolicy) error

func anyone(*networkingv1.NetworkPolicy) error { return nil }

func (k *Keeper) ensure(ctx context.Context, want *networkingv1.NetworkPolicy, refuse holder) (*networkingv1.NetworkPolicy, error) {
	result, err, _ := k.flights.Do(client.ObjectKeyFromObject(want).String(), func() (any, error) {
		return k.write(ctx, want, refuse)
	})
	if err != nil {
		return nil, err
	}
	return result.(*networkingv1.NetworkPolicy), nil
}

func (k *Keeper) write(ctx context.Context, want *networkingv1.NetworkPolicy, refuse holder) (*networkingv1.NetworkPolicy, error) {
	got, err := lookUp(ctx, k.client, want)
	if err != nil {
		return nil, err
	}
	written, err := k.createOrMend(ctx, got, want, refuse)
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return written, err
	}
	// The cache is behind, or the policy lost the label by which the cache knows it.
	got, err = lookUp(ctx, k.live, want)
	if err != nil {
		return nil, err
	}
	return k.createOrMend(ctx, got, want, refuse)
}

func (k *Keeper) createOrMend(ctx context.Context, got, want *networkingv1.NetworkPolicy, refuse holder) (*networkingv1.NetworkPolicy, error) {
	if got == nil {
		made := want.DeepCopy()
		return made, k.client.Create(ctx, made, k.owner)
	}
	if err := refuse(got); err != nil {
		return nil, err
	}
	if holds(got, want) {
		return got, nil
	}
	mended := mend(got, want)
	return mended, k.client.Update(ctx, mended, k.owner)
}

// mend is what a policy has to become, made of what it is, which stays as it is. An owner
// that was not asked for goes, since the policy would go with him.
func mend(got, want *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	mended := got.DeepCopy()
	if mended.Labels == nil {
		mended.Labels = map[string]string{}
	}
	for _, key := range isolation.ChoiceLabels() {
		delete(mended.Labels, key)
	}
	maps.Copy(mended.Labels, want.Labels)
	mended.OwnerReferences = want.DeepCopy().OwnerReferences
	mended.Spec = *want.Spec.DeepCopy()
	return mended
}

// holds says whether a policy is what it has to be. Every pass over a Sandbox asks, so
// that it copies nothing.
func holds(got, want *networkingv1.NetworkPolicy) bool {
	for key, value := range want.Labels {
		if set, there := got.Labels[key]; !there || set != value {
			return false
		}
	}
	for _, key := range isolation.ChoiceLabels() { // another's choice would outlive its template
		if _, there := got.Labels[key]; there && want.Labels[key] == "" {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(got.OwnerReferences, want.OwnerReferences) &&
		apiequality.Semantic.DeepEqual(&got.Spec, &want.Spec)
}

// lookUp reads the policy in the place of the one that is wanted; nil, without an
// error, when there is none. What it reads belongs to the cache and must not be changed.
func lookUp(ctx context.Context, reader client.Reader, want *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
	var got networkingv1.NetworkPolicy
	err := reader.Get(ctx, client.ObjectKeyFromObject(want), &got, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read NetworkPolicy %q: %w", want.Name, err)
	}
	return &got, nil
}
